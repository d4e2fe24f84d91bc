"""From a service to its plans (behaviour 5.1-5.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.services import task
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.services.generation import generate, problems
from temporal_plans.domain.services.spec import (
    Discovery,
    PhaseYaml,
    PlanYaml,
    PodSpec,
    ServiceSpec,
)
from temporal_plans.domain.values.refusal import SpecError


def pod(name: str = "hello", count: int = 2, *tasks: str) -> PodSpec:
    """A pod whose tasks all have a resource set of their own."""
    return PodSpec(
        type=name,
        count=count,
        tasks=tuple(task(name) for name in tasks or ("a", "b", "c")),
    )


def service(*pods: PodSpec, **plans: PlanYaml) -> ServiceSpec:
    return ServiceSpec(name="svc", pods=pods or (pod(),), plans=plans or None)


def one_phase(**phase: object) -> ServiceSpec:
    """A service whose deploy plan is one phase of two ``hello`` pods with tasks a, b, c."""
    written = PhaseYaml.model_validate({"pod": "hello", **phase})
    return service(deploy=PlanYaml(phases={"p": written}))


def phase_of(spec: ServiceSpec) -> PhaseSpec:
    (plan,) = generate(spec)
    (phase,) = plan.phases
    return phase


def steps(phase: PhaseSpec) -> list[str]:
    return [step.name for step in phase.steps]


def test_default_plan_has_a_phase_per_pod_and_a_step_per_instance() -> None:
    (plan,) = generate(service(pod("hello", 2, "a", "b"), pod("none", 0), pod("world", 1, "w")))
    assert (plan.name, plan.strategy.name) == ("deploy", "serial")
    assert [(phase.name, phase.strategy.name, steps(phase)) for phase in plan.phases] == [
        ("hello", "serial", ["hello-0:[a, b]", "hello-1:[a, b]"]),
        ("none", "serial", []),
        ("world", "serial", ["world-0:[w]"]),
    ]
    assert plan.phases[0].steps[1].work == PodWork(pod="hello", index=1, tasks=("a", "b"))


A_B = ("hello-0:[a]", "hello-0:[b]", "hello-1:[a]", "hello-1:[b]")
WHOLE = ("hello-0:[a, b, c]", "hello-1:[a, b, c]")


NOTHING: list[list[str]] = []
NO_TASKS: list[str] = []
NO_KEY: dict[str, list[list[str]]] = {}


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param(NOTHING, WHOLE, id="absent"),
        pytest.param([{"default": [["a", "b"]]}], ("hello-0:[a, b]", "hello-1:[a, b]"), id="both"),
        pytest.param([{"default": [["a"], ["b"]]}], A_B, id="one-then-other"),
        pytest.param(
            [{"0": [["a"]]}, {"default": [["b"]]}], ("hello-0:[a]", "hello-1:[b]"), id="by-index"
        ),
        pytest.param(
            [{"0": [["a"]]}, {"1": NOTHING}], ("hello-0:[a]",), id="nothing-for-an-instance"
        ),
        pytest.param(
            [{"0": [["a"]]}, {"default": NOTHING}], ("hello-0:[a]",), id="nothing-for-the-others"
        ),
        pytest.param(
            [{"7": [["c"]]}, {"default": [["a"]]}],
            ("hello-0:[a]", "hello-1:[a]"),
            id="index-beyond-count",
        ),
        pytest.param(
            [{"01": [["c"]]}, {"default": [["a"]]}],
            ("hello-0:[a]", "hello-1:[c]"),
            id="index-with-zeros",
        ),
        pytest.param(
            [{"default": [["b", "a"]]}], ("hello-0:[b, a]", "hello-1:[b, a]"), id="order-of-tasks"
        ),
    ],
)
def test_steps_of_a_phase(written: object, expected: tuple[str, ...]) -> None:
    assert tuple(steps(phase_of(one_phase(steps=written)))) == expected


CUSTOM = [{"default": [["a"], ["b"], ["c"]]}]


@pytest.mark.parametrize("strategy", ["serial", "canary", "serial-canary"])
def test_ordered_strategies_keep_custom_steps_in_a_row(strategy: str) -> None:
    phase = phase_of(one_phase(strategy=strategy, steps=CUSTOM))
    assert phase.strategy.name == strategy
    assert steps(phase)[:4] == ["hello-0:[a]", "hello-0:[b]", "hello-0:[c]", "hello-1:[a]"]
    assert all(step.depends_on == () for step in phase.steps)


@pytest.mark.parametrize(
    ("strategy", "becomes"),
    [("parallel", "dependency"), ("parallel-canary", "dependency-canary")],
)
def test_parallel_custom_steps_depend_on_all_earlier_ones_of_their_instance(
    strategy: str, becomes: str
) -> None:
    phase = phase_of(one_phase(strategy={"name": strategy, "proceeds": 2}, steps=CUSTOM))
    assert phase.strategy == StrategySpec(name=becomes)
    assert {step.name: step.depends_on for step in phase.steps} == {
        "hello-0:[a]": (),
        "hello-0:[b]": ("hello-0:[a]",),
        "hello-0:[c]": ("hello-0:[a]", "hello-0:[b]"),
        "hello-1:[a]": (),
        "hello-1:[b]": ("hello-1:[a]",),
        "hello-1:[c]": ("hello-1:[a]", "hello-1:[b]"),
    }


@pytest.mark.parametrize("strategy", ["parallel", "parallel-canary"])
def test_without_custom_steps_parallel_stays(strategy: str) -> None:
    phase = phase_of(one_phase(strategy=strategy))
    assert phase.strategy.name == strategy
    assert all(step.depends_on == () for step in phase.steps)


def test_strategies_with_settings() -> None:
    waves = {"name": "waves", "waves": [1, "50%"]}
    assert phase_of(one_phase(strategy=waves)).strategy.waves == (1, "50%")
    bound = phase_of(one_phase(strategy={"name": "max-parallel", "limit": 2}))
    assert bound.strategy.limit == 2


def test_canary_of_a_plan() -> None:
    spec = service(deploy=PlanYaml(strategy="serial-canary", phases={"p": PhaseYaml(pod="hello")}))
    assert generate(spec)[0].strategy.name == "serial-canary"


# --- faults of a step are its errors -------------------------------------------------------------


def sharing() -> PodSpec:
    """Tasks a, b and c in one resource set, a and b with one DNS prefix."""
    whole = pod("hello", 2)
    return whole.but(
        tasks=tuple(
            task.but(
                resource_set="one",
                discovery=Discovery(prefix="dns") if task.name in "ab" else None,
            )
            for task in whole.tasks
        )
    )


def test_tasks_that_share_a_set_or_a_prefix_make_an_erroneous_step() -> None:
    (plan,) = generate(service(sharing()))
    first = plan.phases[0].steps[0]
    assert first.name == "hello-0"
    assert first.work == PodWork(pod="hello", index=0, tasks=())
    shared, prefix = first.errors
    assert "a, b, c of pod hello use the same resource set 'one'" in shared
    assert "DNS prefix 'dns'" in prefix


def test_erroneous_steps_of_one_instance_have_names_of_their_own() -> None:
    spec = service(
        sharing(),
        deploy=PlanYaml(
            phases={
                "p": PhaseYaml.model_validate(
                    {"pod": "hello", "steps": [{"default": [["a", "c"], ["b", "c"], ["a"]]}]}
                )
            }
        ),
    )
    assert steps(phase_of(spec))[:3] == ["hello-0", "hello-0 (2)", "hello-0:[a]"]


def test_tasks_that_share_a_set_may_follow_each_other() -> None:
    spec = one_phase(steps=[{"default": [["a"], ["b"]]}]).but(pods=(sharing(),))
    assert not any(step.errors for step in phase_of(spec).steps)


# --- several plans -------------------------------------------------------------------------------

PHASES = {"p": PhaseYaml(pod="hello")}
UPDATED = {"u": PhaseYaml(pod="hello")}


def test_deploy_is_first_and_the_others_keep_their_order() -> None:
    plan = PlanYaml(phases=PHASES)
    plans = generate(service(zeta=plan, deploy=plan, alpha=plan))
    assert [plan.name for plan in plans] == ["deploy", "zeta", "alpha"]


@pytest.mark.parametrize(
    ("completed_before", "phase"),
    [pytest.param(False, "p", id="first-install"), pytest.param(True, "u", id="update")],
)
def test_update_takes_the_place_of_deploy_once_deployed(completed_before: bool, phase: str) -> None:
    spec = service(
        deploy=PlanYaml(phases=PHASES),
        update=PlanYaml(phases=UPDATED),
        more=PlanYaml(phases=PHASES),
    )
    plans = generate(spec, completed_before=completed_before)
    assert [plan.name for plan in plans] == ["deploy", "more"]
    assert plans[0].phases[0].name == phase


def test_without_an_update_plan_deploy_stays() -> None:
    spec = service(deploy=PlanYaml(phases=PHASES))
    assert generate(spec, completed_before=True) == generate(spec)


def test_parameters_of_a_plan() -> None:
    declared = [{"name": "N", "default": "1"}]
    spec = service(deploy=PlanYaml(phases=PHASES), run=PlanYaml(phases=PHASES, parameters=declared))
    deploy, run = generate(spec)
    assert deploy.parameters is None
    assert run.parameters is not None
    assert run.parameters[0].default == "1"


# --- refusals: behaviour 5.3 ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "path", "message"),
    [
        pytest.param({"strategy": "serail"}, "strategy", "unknown strategy", id="strategy"),
        pytest.param({"strategy": "dependency"}, "strategy", "unknown strategy", id="dependency"),
        pytest.param({"strategy": "random"}, "strategy", "unknown strategy", id="random"),
        pytest.param({"strategy": 3}, "strategy", "", id="strategy-form"),
        pytest.param({"strategy": "waves"}, "strategy.waves", "needs the sizes", id="no-waves"),
        pytest.param({"strategy": "max-parallel"}, "strategy.limit", "needs a limit", id="limit"),
        pytest.param({"pod": "helo"}, "pod", "no such pod", id="pod"),
        pytest.param({"steps": [NO_KEY]}, "steps.0", "exactly one key", id="no-key"),
        pytest.param(
            {"steps": [{"0": NOTHING, "1": NOTHING}]}, "steps.0", "exactly one key", id="two-keys"
        ),
        pytest.param(
            {"steps": [{"default": NOTHING}, {"default": NOTHING}]},
            "steps.1.default",
            "the same key",
            id="default-twice",
        ),
        pytest.param(
            {"steps": [{"0": NOTHING}, {"00": NOTHING}, {"1": NOTHING}]},
            "steps.1.00",
            "the same key",
            id="twice",
        ),
        pytest.param({"steps": [{"0": [["a"]]}]}, "steps", "instance 1", id="index-missing"),
        pytest.param(
            {"steps": [{"first": NOTHING}, {"default": NOTHING}]},
            "steps.0.first",
            "index",
            id="no-index",
        ),
        pytest.param(
            {"steps": [{"-1": NOTHING}, {"default": NOTHING}]}, "steps.0.-1", "index", id="negative"
        ),
        pytest.param(
            {"steps": [{"default": [["x"]]}]}, "steps.0.default.0", "no such task", id="t"
        ),
        pytest.param(
            {"steps": [{"default": [NO_TASKS]}]}, "steps.0.default.0", "without", id="empty"
        ),
        pytest.param(
            {"steps": [{"default": [["a", "a"]]}]},
            "steps.0.default.0",
            "task twice",
            id="task-twice",
        ),
        pytest.param(
            {"steps": [{"default": [["a"], ["b"], ["a"]]}]},
            "steps.0.default.2",
            "listed twice",
            id="step-twice",
        ),
        pytest.param(
            {"strategy": {"name": "max-parallel", "limit": 2}, "steps": CUSTOM},
            "strategy",
            "does not keep the order",
            id="steps-out-of-order",
        ),
    ],
)
def test_refuses_phases(phase: dict[str, object], path: str, message: str) -> None:
    spec = one_phase(**phase)
    found = [
        problem for problem in problems(spec) if problem.field == f"plans.deploy.phases.p.{path}"
    ]
    assert len(found) == 1
    assert message in found[0].problem
    with pytest.raises(SpecError) as raised:
        generate(spec)
    assert raised.value.reasons == problems(spec)


@pytest.mark.parametrize(
    ("plans", "path", "message"),
    [
        pytest.param({"other": PlanYaml(phases=PHASES)}, "plans", "no plan deploy", id="no-deploy"),
        pytest.param(
            {"deploy": PlanYaml(phases={})}, "plans.deploy.phases", "no phases", id="empty"
        ),
        pytest.param(
            {"deploy": PlanYaml(phases=PHASES), "recovery": PlanYaml(phases=PHASES)},
            "plans.recovery",
            "has a plan of this name",
            id="reserved",
        ),
        pytest.param(
            {"deploy": PlanYaml(phases=PHASES, strategy="x")},
            "plans.deploy.strategy",
            "unknown strategy",
            id="strategy",
        ),
        pytest.param(
            {"deploy": PlanYaml(phases={"a/b": PhaseYaml(pod="hello")})},
            "plans.deploy.phases.a/b",
            "must not contain '/'",
            id="phase-name",
        ),
        pytest.param(
            {"deploy": PlanYaml(phases=PHASES, parameters=[{"name": "9"}])},
            "plans.deploy.parameters",
            "0.name",
            id="parameter-form",
        ),
        pytest.param(
            {"deploy": PlanYaml(phases=PHASES, parameters=[{"name": "A"}, {"name": "A"}])},
            "plans.deploy.parameters.A",
            "declared twice",
            id="parameter-twice",
        ),
    ],
)
def test_refuses_plans(plans: dict[str, PlanYaml], path: str, message: str) -> None:
    (problem,) = problems(service(**plans))
    assert problem.field == path
    assert message in problem.problem


# --- whatever is generated can run ---------------------------------------------------------------

_lists = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True).map(tuple),
    max_size=4,
    unique=True,
)


@given(
    count=st.integers(0, 4),
    strategy=st.sampled_from(["serial", "parallel", "canary", "parallel-canary"]),
    default=_lists,
    first=_lists,
    shared=st.booleans(),
)
def test_generated_plans_are_sound(
    count: int,
    strategy: str,
    default: list[tuple[str, ...]],
    first: list[tuple[str, ...]],
    shared: bool,
) -> None:
    spec = one_phase(strategy=strategy, steps=[{"0": first}, {"default": default}])
    spec = spec.but(pods=((sharing() if shared else pod()).but(count=count),))
    (plan,) = generate(spec)
    assert plan_problems(plan, NAMES, ()) == ()
    assert PlanSpec.model_validate_json(plan.model_dump_json()) == plan
    order = [step.name for step in plan.phases[0].steps]
    assert len(order) == len(first if count else []) + len(default) * max(count - 1, 0)
    for position, step in enumerate(plan.phases[0].steps):
        assert set(step.depends_on) <= set(order[:position])
