"""Plans written in Python: what they become, and how their faults are told."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from temporalio import activity, workflow
from temporalio.common import RawValue

from repository import ROOT
from temporal_plans import build
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.temporal import RetrySpec
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.kinds.workflow import WorkflowWork
from temporal_plans.domain.plans.plan import ParameterSpec, PlanSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import SpecError
from temporal_plans.loading.plans import load_plan, load_plan_text

EXAMPLES = ROOT / "examples" / "plans"


@activity.defn
async def freeze() -> None: ...


@activity.defn(name="dump_database")
def dump(snapshot: str) -> None: ...


class Database:
    @activity.defn
    async def thaw(self) -> None: ...


@activity.defn(dynamic=True)
async def anything(args: Sequence[RawValue]) -> None: ...


@workflow.defn
class Verify:
    @workflow.run
    async def run(self) -> None: ...


@workflow.defn(name="verify-deeply")
class Renamed:
    @workflow.run
    async def run(self) -> None: ...


class Undecorated(Verify): ...


def plain() -> None: ...


def _work(step: build.Step) -> Work:
    return build.plan("p", build.phase("a", step)).phases[0].steps[0].work


def _faults(make: Callable[[], object]) -> list[str]:
    with pytest.raises(SpecError) as refused:
        make()
    return [str(problem) for problem in refused.value.reasons]


@pytest.mark.parametrize(
    ("step", "work"),
    [
        pytest.param(build.activity("x"), ActivityWork(type="x"), id="activity-by-name"),
        pytest.param(build.activity(freeze), ActivityWork(type="freeze"), id="activity-function"),
        pytest.param(build.activity(dump), ActivityWork(type="dump_database"), id="activity-named"),
        pytest.param(
            build.activity(Database().thaw), ActivityWork(type="thaw"), id="activity-method"
        ),
        pytest.param(
            build.activity(
                "x",
                inputs=[1, "b"],
                task_queue="q",
                timeout=build.minutes(5),
                heartbeat_timeout="30s",
                schedule_to_close_timeout=build.hours(2),
                retry=build.retry(
                    maximum_attempts=3,
                    initial_interval=0.5,
                    backoff_coefficient=1.5,
                    maximum_interval=build.seconds(9),
                    non_retryable_error_types=["Broken"],
                ),
            ),
            ActivityWork(
                type="x",
                inputs=(1, "b"),
                task_queue="q",
                timeout=timedelta(minutes=5),
                heartbeat_timeout=timedelta(seconds=30),
                schedule_to_close_timeout=timedelta(hours=2),
                retry=RetrySpec(
                    maximum_attempts=3,
                    initial_interval=timedelta(seconds=0.5),
                    backoff_coefficient=1.5,
                    maximum_interval=timedelta(seconds=9),
                    non_retryable_error_types=("Broken",),
                ),
            ),
            id="activity-with-everything",
        ),
        pytest.param(build.workflow(Verify), WorkflowWork(type="Verify"), id="workflow-class"),
        pytest.param(build.workflow(Verify.run), WorkflowWork(type="Verify"), id="workflow-run"),
        pytest.param(
            build.workflow(Renamed, id="v", timeout="1d", input={"deep": None}),
            WorkflowWork(
                type="verify-deeply", id="v", timeout=timedelta(days=1), input={"deep": None}
            ),
            id="workflow-named",
        ),
        pytest.param(
            build.command("df -h", cpus=0.5, memory=64, env={"A": 1, "B": True}, retries=0),
            CommandWork(cmd="df -h", cpus=0.5, memory=64, env={"A": "1", "B": "true"}, retries=0),
            id="command",
        ),
        pytest.param(build.approval(), ApprovalWork(), id="approval"),
        pytest.param(build.approval("ok?"), ApprovalWork(message="ok?"), id="approval-message"),
        pytest.param(
            build.sleep(timedelta(milliseconds=1500)),
            SleepWork(duration=timedelta(seconds=1.5)),
            id="sleep",
        ),
        pytest.param(
            build.custom("soak", {"days": 2}),
            CustomWork(type="soak", input={"days": 2}),
            id="custom",
        ),
    ],
)
def test_work(step: build.Step, work: Work) -> None:
    assert _work(step) == work


@pytest.mark.parametrize(
    ("strategy", "spec"),
    [
        pytest.param(None, StrategySpec(), id="none"),
        pytest.param("parallel", StrategySpec(name="parallel"), id="by-name"),
        pytest.param(build.serial(), StrategySpec(), id="serial"),
        pytest.param(build.parallel(), StrategySpec(name="parallel"), id="parallel"),
        pytest.param(build.dependency(), StrategySpec(name="dependency"), id="dependency"),
        pytest.param(build.random(), StrategySpec(name="random"), id="random"),
        pytest.param(build.canary(), StrategySpec(name="canary"), id="canary"),
        pytest.param(
            build.canary(proceeds=1, then="parallel"),
            StrategySpec(name="parallel-canary", proceeds=1),
            id="parallel-canary",
        ),
        pytest.param(
            build.canary(then="max-parallel", limit=3),
            StrategySpec(name="max-parallel-canary", limit=3),
            id="max-parallel-canary",
        ),
        pytest.param(
            build.max_parallel(3), StrategySpec(name="max-parallel", limit=3), id="max-parallel"
        ),
        pytest.param(
            build.waves(1, "25%"), StrategySpec(name="waves", waves=(1, "25%")), id="waves"
        ),
        pytest.param(
            build.strategy("by-zone", zones=["a"]),
            StrategySpec(name="by-zone", options={"zones": ["a"]}),
            id="own",
        ),
    ],
)
def test_strategy(strategy: build.Strategy | str | None, spec: StrategySpec) -> None:
    phase = build.phase("a", build.sleep(1), strategy=strategy)
    plan = build.plan("p", phase, strategy=strategy)
    assert (plan.strategy, plan.phases[0].strategy) == (spec, spec)


SETTINGS: dict[str, dict[str, Any]] = {
    "activity": {"type": "dump"},
    "workflow": {"type": "Dump"},
    "command": {"cmd": "true"},
    "approval": {},
    "sleep": {"duration": 1},
    "custom": {"type": "soak"},
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_step_of_any_kind_by_its_name(kind: str) -> None:
    step = build.work(kind, name="s", **SETTINGS[kind])
    [made] = build.plan("p", build.phase("a", step)).phases[0].steps
    assert (made.name, made.work.kind) == ("s", kind)


def test_what_people_write_has_a_function_of_its_own() -> None:
    """Those that are there today. One more is written with ``work`` and ``strategy`` at once."""
    from temporal_plans.domain.plans.strategies import CANARIES

    assert set(build.__all__) >= set(SETTINGS)
    assert set(build.__all__) >= {
        *("serial", "parallel", "dependency", "random", "max_parallel", "waves"),
    }
    orders: tuple[Literal["serial", "parallel", "dependency", "max-parallel"], ...] = (
        "serial",
        "parallel",
        "dependency",
        "max-parallel",
    )
    made = {build.canary(then=then).name for then in orders}
    assert made == set(CANARIES) - {"serial-canary"}


@dataclass
class Request:
    day: date
    note: str | None = None


class Model(BaseModel):
    at: datetime


@pytest.mark.parametrize(
    ("value", "written"),
    [
        pytest.param(
            Request(date(2030, 1, 2)), {"day": "2030-01-02", "note": None}, id="dataclass"
        ),
        pytest.param(
            Model(at=datetime(2030, 1, 2, tzinfo=UTC)), {"at": "2030-01-02T00:00:00Z"}, id="model"
        ),
        pytest.param((1, {2: None}), [1, {"2": None}], id="nested"),
        pytest.param(False, False, id="false"),
        pytest.param("", "", id="empty"),
    ],
)
def test_inputs_are_what_temporal_would_pass_on(value: object, written: object) -> None:
    work = _work(build.activity("x", value))
    assert isinstance(work, ActivityWork)
    assert work.input == written


def test_names_that_nobody_gave() -> None:
    phase = build.phase(
        "a",
        build.sleep(1),
        build.sleep(2, name="sleep-2"),
        build.sleep(3),
        build.activity(freeze),
        build.activity(freeze),
        build.command("true"),
        build.approval(),
        build.custom("soak"),
    )
    names = [step.name for step in build.plan("p", phase).phases[0].steps]
    assert names == [
        *("sleep", "sleep-2", "sleep-3", "freeze", "freeze-2", "command", "approval", "soak")
    ]


def test_dependencies_by_step_and_by_name() -> None:
    first, second = build.sleep(1), build.sleep(1)
    base = build.phase("base", first, second, build.sleep(1, depends_on=[second, "sleep"]),
                       strategy=build.dependency())  # fmt: skip
    top = build.phase("top", build.approval(), depends_on=[base])
    plan = build.plan("p", base, top, strategy="parallel")
    assert plan.phases[0].steps[2].depends_on == ("sleep-2", "sleep")
    assert plan.phases[1].depends_on == ("base",)
    assert plan.strategy.name == "dependency"  # as in a file: parallel, but in order


def test_errors_and_repetition() -> None:
    phase = build.phase("a", build.approval())
    plan = build.plan("p", phase, on_error="stop", reentrant=False)
    assert (plan.on_error, plan.reentrant) == ("stop", False)
    assert build.plan("p", phase) == plan.but(on_error="continue", reentrant=True)


def test_parameters() -> None:
    parameters = [
        build.parameter("SNAPSHOT", required=True, pattern="[a-z]+", description="its name"),
        build.parameter("KEEP", default=30),
    ]
    plan = build.plan("p", build.phase("a", build.approval()), parameters=parameters)
    assert plan.parameters == (
        ParameterSpec(name="SNAPSHOT", required=True, pattern="[a-z]+", description="its name"),
        ParameterSpec(name="KEEP", default="30"),
    )


@pytest.mark.parametrize(
    ("parameters", "declared"),
    [pytest.param(None, None, id="takes-any"), pytest.param([], (), id="takes-none")],
)
def test_no_parameters(parameters: list[build.Parameter] | None, declared: object) -> None:
    plan = build.plan("p", build.phase("a", build.approval()), parameters=parameters)
    assert plan.parameters == declared


def test_the_example_file_in_python() -> None:
    database = partial(build.activity, task_queue="database")
    upload = database("upload_snapshot", "${SNAPSHOT}", name="upload")
    plan = build.plan(
        "backup",
        build.phase(
            "prepare",
            database("freeze_database", name="freeze", timeout=build.minutes(1)),
            build.sleep("5s", name="settle"),
            database(
                "dump_database",
                {"snapshot": "${SNAPSHOT}", "keep_days": "${KEEP_DAYS}"},
                name="dump",
                timeout=build.hours(2),
                heartbeat_timeout="30s",
                retry=build.retry(maximum_attempts=3),
            ),
            database("thaw_database", name="thaw"),
        ),
        build.phase(
            "review",
            build.approval("Is the dump complete? Continue to publish it", name="look"),
        ),
        build.phase(
            "publish",
            upload,
            database("announce_snapshot", "${SNAPSHOT}", name="announce", depends_on=[upload]),
            strategy=build.parallel(),
        ),
        description="Takes a snapshot of the database and keeps it off site",
        parameters=[
            build.parameter(
                "SNAPSHOT",
                description="the snapshot's name",
                required=True,
                pattern="[a-z0-9-]+",
            ),
            build.parameter("KEEP_DAYS", default=30),
        ],
    )
    assert plan == load_plan(EXAMPLES / "backup.yml")


_TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]))
"""Texts as files may have them: zero bytes are refused."""

_NAMES = st.text("abc-01", min_size=1, max_size=6)
_LENGTHS = st.integers(1, 10**6).map(lambda ms: timedelta(milliseconds=ms))
_INPUTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=6,
)
_STEPS = st.one_of(
    st.builds(build.activity, _NAMES, _INPUTS, timeout=_LENGTHS),
    st.builds(build.workflow, _NAMES, _INPUTS),
    st.builds(build.custom, _NAMES, _INPUTS),
    st.builds(build.sleep, _LENGTHS),
    st.builds(build.approval, _NAMES),
    st.builds(build.command, _NAMES, cpus=st.floats(0.01, 64)),
)
_PHASES = st.lists(
    st.tuples(_NAMES, st.lists(_STEPS, max_size=4)),
    min_size=1,
    max_size=3,
    unique_by=lambda p: p[0],
).map(lambda phases: [build.phase(name, *steps) for name, steps in phases])


@given(_NAMES, _PHASES)
def test_the_plans_json_is_a_plan_file(name: str, phases: list[build.Phase]) -> None:
    plan = build.plan(name, *phases)
    assert load_plan_text(plan.model_dump_json(), source="plan.json") == plan
    assert load_plan_text(plan.model_dump_json(by_alias=True), source="plan.json") == plan
    assert PlanSpec.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        pytest.param(
            build.activity(plain),
            "phases.a.steps.plain.activity.type: plain has no @activity.defn",
            id="function-undecorated",
        ),
        pytest.param(
            build.activity(lambda: None),
            "phases.a.steps.<lambda>.activity.type: <lambda> has no @activity.defn",
            id="lambda",
        ),
        pytest.param(
            build.activity(anything),
            "phases.a.steps.anything.activity.type: anything is dynamic",
            id="activity-dynamic",
        ),
        pytest.param(
            build.workflow(Undecorated),
            "phases.a.steps.Undecorated.workflow.type: Undecorated has no @workflow.defn",
            id="workflow-subclass",
        ),
        pytest.param(
            build.activity("x", object()),
            "phases.a.steps.x.activity.input: can't be written as JSON: Unable to serialize",
            id="input-unknown",
        ),
        pytest.param(
            build.activity("x", timeout="soon"), "phases.a.steps.x.activity.timeout: ", id="timeout"
        ),
        pytest.param(
            build.activity("x", 1, inputs=[2]), "phases.a.steps.x.activity.inputs: ", id="inputs"
        ),
        pytest.param(build.command(" "), "phases.a.steps.command.command.cmd: ", id="command"),
        pytest.param(build.sleep(1, name="b/c"), "phases.a.steps.b/c: a name must not", id="name"),
        pytest.param(
            build.sleep(1, depends_on=["x"]),
            "phases.a.steps.sleep.depends-on: names ",
            id="depends",
        ),
        pytest.param(
            build.sleep(1, depends_on=[build.sleep(2)]),
            'phases.a.steps.sleep.depends-on: is a step of another phase (found "sleep")',
            id="step-of-elsewhere",
        ),
    ],
)
def test_faults_of_steps(step: build.Step, fault: str) -> None:
    [told] = _faults(lambda: build.plan("p", build.phase("a", step)))
    assert told.startswith(fault)


@pytest.mark.parametrize(
    ("make", "path"),
    [
        pytest.param(lambda: build.plan("p"), "phases: ", id="no-phases"),
        pytest.param(lambda: build.plan("", _phase()), "name: ", id="no-name"),
        pytest.param(lambda: build.plan("p", _phase(), _phase()), "phases.a: ", id="same-name"),
        pytest.param(
            lambda: build.plan("p", _phase(), strategy=build.max_parallel(0)),
            "strategy.limit: ",
            id="limit",
        ),
        pytest.param(
            lambda: build.plan("p", _phase(), strategy=build.waves("0%")),
            "strategy.waves.0: ",
            id="waves",
        ),
        pytest.param(
            lambda: build.plan("p", _phase(), parameters=[build.parameter("2")]),
            "parameters.2",
            id="parameter",
        ),
    ],
)
def test_faults_of_plans(make: Callable[[], object], path: str) -> None:
    [told] = _faults(make)
    assert told.startswith(path)


def _phase() -> build.Phase:
    return build.phase("a", build.approval())


def test_all_faults_are_told_together_with_the_plans_name() -> None:
    bad: Any = object()
    with pytest.raises(SpecError) as refused:
        build.plan(
            "nightly",
            build.phase("a", build.activity(plain), build.activity("x", bad)),
            build.phase("b", build.sleep("soon"), strategy=build.max_parallel(0)),
        )
    lines = str(refused.value).splitlines()
    assert len(lines) == 4
    assert all(line.startswith("plan nightly: ") for line in lines)
