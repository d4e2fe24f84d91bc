"""What differs between configurations outside of their pods, and how changes are summed up."""

from typing import Any

import pytest

from builders.plans import phase_spec, plan_spec, step_spec
from builders.services import pod, service
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.services.change import FieldChange, PlanChange, PlanEffect, summary
from temporal_plans.domain.services.change_texts import LINES_LIMIT, VALUE_LIMIT, field_change
from temporal_plans.domain.services.plan_comparison import plan_changes, settings_changes
from temporal_plans.domain.services.spec import PhaseYaml, PlanYaml, ServiceSpec
from temporal_plans.domain.tasks.goal import Goal


def plan_of(strategy: Any = "serial", **phases: Any) -> PlanYaml:
    return PlanYaml(
        phases={name: PhaseYaml(pod="web", strategy=how) for name, how in phases.items()},
        strategy=strategy,
    )


def web(**plans: PlanYaml) -> ServiceSpec:
    return service(pod("web", 1), plans=plans or None)


DEPLOY = plan_of(web="serial")
STEPS: tuple[dict[str, tuple[tuple[str, ...], ...]], ...] = ({"default": (("server",),)},)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(web(), web(), [], id="same"),
        pytest.param(web(), web(deploy=DEPLOY), [], id="the-default-plan-written"),
        pytest.param(web(), service(pod("web", 1), pod("db", 1)), [], id="generated-for-a-pod"),
        pytest.param(
            web(),
            web(deploy=DEPLOY, backup=DEPLOY),
            ["plan backup added"],
            id="added",
        ),
        pytest.param(
            web(deploy=DEPLOY, backup=DEPLOY),
            web(deploy=DEPLOY),
            ["plan backup removed"],
            id="removed",
        ),
        pytest.param(
            web(),
            web(deploy=plan_of(web={"name": "canary", "proceeds": 1})),
            ['plan deploy: phases.web.strategy serial -> {"name": "canary", "proceeds": 1}'],
            id="a-canary-added",
        ),
        pytest.param(
            web(deploy=DEPLOY),
            web(deploy=plan_of(web={"name": "serial"})),
            [],
            id="another-spelling",
        ),
        pytest.param(
            web(deploy=plan_of(a="serial", b="serial")),
            web(deploy=plan_of("parallel", b="serial", a="serial")),
            ["plan deploy: strategy serial -> parallel, phases a, b -> b, a"],
            id="another-order",
        ),
        pytest.param(
            web(deploy=DEPLOY),
            web(deploy=plan_of(web="serial", more="parallel")),
            ["plan deploy: phases.more (none) -> pod web, strategy parallel"],
            id="a-phase-more",
        ),
        pytest.param(
            web(deploy=DEPLOY),
            web(deploy=PlanYaml(phases={"web": PhaseYaml(pod="web", steps=STEPS)})),
            ['plan deploy: phases.web.steps (none) -> [{"default": [["server"]]}]'],
            id="steps",
        ),
        pytest.param(
            web(deploy=DEPLOY),
            web(deploy=DEPLOY.but(parameters=[{"name": "A"}])),
            ['plan deploy: parameters.A (none) -> {"name": "A"}'],
            id="a-parameter",
        ),
    ],
)
def test_plans(before: ServiceSpec, after: ServiceSpec, expected: list[str]) -> None:
    changes = plan_changes(before, None, after, None)
    assert [summary((), [change]) for change in changes] == expected
    assert not any(field.restarts for change in changes for field in change.fields)


def test_plans_that_replace_those_of_the_file() -> None:
    step = step_spec("web-0:[server]", PodWork(pod="web", index=0, tasks=("server",)))
    made = plan_spec(phase_spec("web", step), name="deploy")
    other = made.but(phases=(phase_spec("web", step, strategy="parallel"),))
    assert plan_changes(web(), None, web(), (made,)) == ()
    (change,) = plan_changes(web(), (made,), web(), (other,))
    field = FieldChange(
        path="phases.web.strategy", before="serial", after="parallel", restarts=False
    )
    assert change == PlanChange(plan="deploy", effect=PlanEffect.CHANGE, fields=(field,))


def test_settings_of_the_service() -> None:
    after = web().but(goal=Goal.FINISH, web_url="http://a", principal="me", zookeeper="zk:1")
    changes = settings_changes(web(), after)
    assert [(one.path, one.restarts) for one in changes] == [
        ("web-url", False),
        ("scheduler.principal", False),
        ("scheduler.zookeeper", False),
        ("goal", False),
    ]
    assert summary((), (), changes[:1]) == "web-url (none) -> http://a"


def test_no_change_is_said() -> None:
    assert summary(()) == "no change"


def test_texts_of_several_lines_are_compared_by_line() -> None:
    before = "one\ntwo\nthree\nfour\nfive\nsix\nseven"
    change = field_change("cmd", before, before.replace("two", "2").replace("seven", "7"))
    assert change.lines == (
        "...", " one", "-two", "+2", " three", "...", " six", "-seven", "+7",
    )  # fmt: skip
    assert field_change("cmd", "one", "two").lines == ()
    assert field_change("cmd", None, "one\ntwo").lines == ()


def test_long_texts_show_their_first_lines() -> None:
    change = field_change("cmd", "a" * 200, "\n".join("b" * 200 for _ in range(100)))
    assert len(change.lines) == LINES_LIMIT + 1
    assert change.lines[-1].endswith("more lines")
    assert max(map(len, change.lines)) <= VALUE_LIMIT
