"""The state that a plan begins in, read off what is launched (behaviour 3.6)."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from builders.boards import tell
from builders.clock import NOW
from builders.plans import phase_spec, plan_spec, step_spec
from builders.services import config, pod, service, task
from builders.tasks import by_name, record_of
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.activity import ActivityWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PhaseState, PlanBoard, PlanState
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import StepState, reported
from temporal_plans.domain.services.comparison import relabelled
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.initial_state import Former, initial_state
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import (
    Discovery,
    PhaseYaml,
    PlanYaml,
    ReadinessCheck,
    ServiceSpec,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus

READY = ReadinessCheck(cmd="up", interval=1, timeout=1)

# --- one step -------------------------------------------------------------------------------------

TASKS = {
    "run": task("run"),
    "checked": task("checked", readiness_check=READY),
    "finish": task("finish", Goal.FINISH),
    "once": task("once", Goal.ONCE),
}
SPEC = service(pod("web", 1, *TASKS.values()))


def launch(
    name: str,
    state: TaskState | None = TaskState.RUNNING,
    *,
    config_id: str = "new",
    ready: bool | None = None,
    **fields: object,
) -> TaskRecord:
    return record_of(SPEC, "web", 0, state, name=name, config_id=config_id, ready=ready, **fields)


def step_state(*records: TaskRecord, work: PodWork | None = None) -> StepState | None:
    """Of the step that launches the tasks of these records."""
    work = work or PodWork(pod="web", index=0, tasks=tuple(one.task for one in records))
    made = plan_spec(phase_spec("web", step_spec("web-0", work)))
    state = initial_state(made, config("new", SPEC), by_name(*records))
    return state.phases[0].steps[0] if state.phases else None


RUNNING, FINISHED, FAILED = TaskState.RUNNING, TaskState.FINISHED, TaskState.FAILED
COMPLETE, STARTED, STARTING, PENDING = (
    Status.COMPLETE,
    Status.STARTED,
    Status.STARTING,
    Status.PENDING,
)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([launch("run")], COMPLETE, id="running"),
        pytest.param([launch("run", config_id="old")], PENDING, id="running-other-config"),
        pytest.param([launch("run", FAILED)], PENDING, id="failed"),
        pytest.param([launch("run", FINISHED)], PENDING, id="running-task-finished"),
        pytest.param([launch("run", TaskState.LOST)], PENDING, id="lost"),
        pytest.param([launch("run", TaskState.UNREACHABLE)], PENDING, id="unreachable"),
        pytest.param([launch("run", TaskState.KILLING)], PENDING, id="being-killed"),
        pytest.param([launch("run", None)], STARTING, id="not-heard-of"),
        pytest.param([launch("run", TaskState.STAGING)], STARTING, id="staging"),
        pytest.param([launch("run", None, config_id="old")], PENDING, id="staging-other-config"),
        pytest.param([launch("checked", ready=True)], COMPLETE, id="ready"),
        pytest.param([launch("checked", ready=False)], STARTED, id="not-ready"),
        pytest.param([launch("checked")], STARTED, id="readiness-not-known"),
        pytest.param([launch("checked", ready=False, config_id="old")], PENDING, id="old-unready"),
        pytest.param([launch("finish", FINISHED)], COMPLETE, id="finished"),
        pytest.param([launch("finish", FINISHED, config_id="old")], PENDING, id="finish-again"),
        pytest.param([launch("finish")], STARTED, id="finish-under-way"),
        pytest.param([launch("once", FINISHED, config_id="old")], COMPLETE, id="once-is-once"),
        pytest.param([launch("once", FAILED)], PENDING, id="once-failed"),
        pytest.param([launch("once")], STARTED, id="once-under-way"),
        pytest.param(
            [launch("once", FINISHED, config_id="old", goal="RUNNING")],
            PENDING,
            id="ended-by-chance-before-it-was-once",
        ),
        pytest.param(
            [launch("run", FAILED, permanently_failed=True)], COMPLETE, id="to-be-replaced"
        ),
        pytest.param(
            [launch("run", config_id="old", permanently_failed=True)],
            COMPLETE,
            id="to-be-replaced-other-config",
        ),
        pytest.param([launch("checked", paused=True)], COMPLETE, id="paused"),
        pytest.param([launch("once", paused=True)], STARTED, id="paused-once"),
        pytest.param([launch("once", FAILED, paused=True)], PENDING, id="paused-once-and-dead"),
        pytest.param([launch("once", None, paused=True)], STARTING, id="pausing"),
        pytest.param([launch("run", config_id="old", paused=True)], PENDING, id="paused-old"),
        pytest.param([launch("run"), launch("checked", ready=True)], COMPLETE, id="all-there"),
        pytest.param([launch("run"), launch("checked", ready=False)], STARTED, id="one-under-way"),
        pytest.param([launch("run"), launch("checked", FAILED)], PENDING, id="one-failed"),
        pytest.param(
            [launch("run"), launch("finish", FINISHED, config_id="old")], PENDING, id="one-old"
        ),
        pytest.param(
            [launch("run", None), launch("once", FINISHED, config_id="old")],
            STARTING,
            id="beside-what-is-done-once",
        ),
        pytest.param(
            [launch("run", None), launch("checked", FAILED, permanently_failed=True)],
            STARTING,
            id="beside-what-is-replaced",
        ),
        pytest.param(
            [launch("once", FAILED, permanently_failed=True)],
            PENDING,
            id="recovery-launches-nothing-that-is-to-finish",
        ),
        pytest.param(
            [launch("run", FAILED, permanently_failed=True).but(retired=True)],
            PENDING,
            id="nobody-had-it-when-it-was-to-be-replaced",
        ),
    ],
)
def test_one_step(records: list[TaskRecord], expected: Status) -> None:
    state = step_state(*records)
    assert (state.status if state else PENDING) is expected
    assert state != StepState()  # what is as new is left out


def test_what_was_never_launched() -> None:
    both = PodWork(pod="web", index=0, tasks=("run", "once"))
    assert step_state(work=both) is None
    assert step_state(launch("run"), work=both) is None  # else "once" would never be


def test_a_step_may_have_a_configuration_of_its_own() -> None:
    work = PodWork(pod="web", index=0, tasks=("run",), config_id="old")
    state = step_state(launch("run", config_id="old"), work=work)
    assert state == StepState(status=COMPLETE)
    assert step_state(launch("run"), work=work) is None


def test_recovery_begins_as_new() -> None:
    work = PodWork(pod="web", index=0, tasks=("run",), recovery="transient")
    assert step_state(launch("run"), work=work) is None


def test_what_is_taken_up_goes_on() -> None:
    """As the step that launched them would: later reports complete it, late ones count nothing."""
    run, checked = launch("run"), launch("checked", ready=False)
    state = step_state(run, checked)
    assert state is not None
    assert state.begun
    assert {key: (one.name, one.status) for key, one in state.tasks.items()} == {
        run.task_id: ("web-0-run", COMPLETE),
        checked.task_id: ("web-0-checked", STARTED),
    }
    ready = TaskStatus(
        task_id=checked.task_id, name=checked.name, state=RUNNING, sequence=1, at=NOW, ready=True
    )
    assert reported(state, ready, Backoff(), NOW).complete
    late = ready.but(sequence=0)
    assert reported(state, late, Backoff(), NOW) == state


def test_steps_with_faults_stay_in_error() -> None:
    twice = tuple(task(name, discovery=Discovery(prefix="x")) for name in ("a", "b"))
    spec = service(pod("web", 1, *twice))
    (made,) = generate(spec)
    runs = by_name(*(record_of(spec, "web", 0, name=name, config_id="new") for name in ("a", "b")))
    state = initial_state(made, config("new", spec), runs)
    assert state == PlanState()
    assert PlanBoard(made, state).status is Status.ERROR


# --- a whole plan ---------------------------------------------------------------------------------


def canaries(hello: int, cpus: float = 0.1) -> ServiceSpec:
    """The service of compatibility 14.5, test_canary_strategy."""
    return service(
        pod("hello", hello, cpus=cpus),
        pod("world", 4),
        plans={
            "deploy": PlanYaml(
                phases={
                    "hello-deploy": PhaseYaml(pod="hello", strategy="parallel-canary"),
                    "world-deploy": PhaseYaml(pod="world", strategy="serial-canary"),
                }
            )
        },
    )


def running(spec: ServiceSpec, config_id: str = "old") -> Mapping[str, TaskRecord]:
    return by_name(
        *(
            record_of(spec, one.type, i, _reached(asked.goal), name=asked.name, config_id=config_id)
            for one in spec.pods
            for i in range(one.count)
            for asked in one.tasks
        )
    )


def _reached(goal: Goal) -> TaskState:
    return RUNNING if goal is Goal.RUNNING else FINISHED


def changed(old: ServiceSpec, new: ServiceSpec, runs: Mapping[str, TaskRecord]) -> PlanBoard:
    """The deploy plan after a change, as its board shows it."""
    found = relabelled(runs, {"old": old, "new": new}, "new")
    (made,) = generate(new)
    return PlanBoard(made, initial_state(made, config("new", new), found))


def reads(board: PlanBoard) -> list[str]:
    return ["".join(step.shown.value[0] for step in phase.steps) for phase in board.phases]


def proceed(board: PlanBoard, phase: str) -> None:
    assert http_code(tell(board, Verb.CONTINUE, phase)) == 200


def complete(board: PlanBoard, phase: int, *steps: int) -> None:
    for step in steps:
        board.phases[phase].set(step, StepState(status=COMPLETE))


def test_one_more_pod_waits_for_one_continue() -> None:
    """Compatibility 14.5, test_canary_strategy (7)."""
    four = canaries(4)
    board = changed(four, canaries(5), running(four))
    assert reads(board) == ["CCCCW", "CCCC"]
    assert (board.phases[0].status, board.status) == (Status.WAITING, Status.WAITING)
    assert board.phases[0].candidates() == []
    proceed(board, "hello-deploy")
    assert board.phases[0].candidates() == [4]
    complete(board, 0, 4)
    assert board.status is COMPLETE


def test_a_change_of_all_pods_goes_through_the_gates_again() -> None:
    """Compatibility 14.5, test_canary_strategy (8)."""
    five = canaries(5)
    board = changed(five, canaries(5, cpus=0.2), running(five))
    assert reads(board) == ["WWPPP", "CCCC"]
    proceed(board, "hello-deploy")
    assert board.phases[0].candidates() == [0]
    complete(board, 0, 0)
    assert (reads(board)[0], board.status) == ("CWPPP", Status.WAITING)
    proceed(board, "hello-deploy")
    assert board.phases[0].candidates() == [1, 2, 3, 4]


def test_a_change_in_the_middle_of_a_change() -> None:
    """1 to 2 hello pods and more cpus for world; then other cpus, when only world-0 was moved."""
    old = service(pod("hello", 1), pod("world", 2, cpus=1.0))
    mid = service(pod("hello", 2), pod("world", 2, cpus=2.0))
    new = service(pod("hello", 2), pod("world", 2, cpus=1.5))
    runs = by_name(
        record_of(mid, "hello", 0, config_id="mid"),
        record_of(mid, "hello", 1, config_id="mid"),
        record_of(mid, "world", 0, config_id="mid"),
        record_of(old, "world", 1, config_id="old"),
    )
    found = relabelled(runs, {"old": old, "mid": mid, "new": new}, "new")
    (made,) = generate(new)
    board = PlanBoard(made, initial_state(made, config("new", new), found))
    assert reads(board) == ["CC", "PP"]


def test_a_launch_under_way_survives_a_change_elsewhere() -> None:
    old = service(pod("hello", 2), pod("world", 1))
    new = service(pod("hello", 2), pod("world", 1, cpus=0.5))
    runs = by_name(
        record_of(old, "hello", 0), record_of(old, "hello", 1, None), record_of(old, "world", 0)
    )
    board = changed(old, new, runs)
    assert [[step.shown for step in phase.steps] for phase in board.phases] == [
        [COMPLETE, STARTING],
        [PENDING],
    ]
    assert board.phases[0].launched() == [1]


def test_multistep_and_goals() -> None:
    """Compatibility 14.5, test_goal_states and test_multistep_plan: cpus of a pod that has its ONCE
    task in a step of its own."""
    tasks = (task("once", Goal.ONCE), task("finish", Goal.FINISH), task("run"))
    plans = {
        "deploy": PlanYaml(
            phases={
                "web": PhaseYaml(
                    pod="web", steps=({"default": (("once",), ("finish",), ("run",))},)
                )
            }
        )
    }
    old, new = (service(pod("web", 2, *tasks, cpus=n), plans=plans) for n in (0.1, 0.2))
    assert reads(changed(old, old, running(old))) == ["CCCCCC"]
    assert reads(changed(old, new, running(old))) == ["CPPCPP"]


# --- what no record tells -------------------------------------------------------------------------

ACTIVITY = ActivityWork(type="migrate", input=1)


def mixed(work: Work = ACTIVITY, phase: str = "web") -> PlanSpec:
    steps = (
        step_spec("migrate", work),
        step_spec("web-0", PodWork(pod="web", index=0, tasks=("run",))),
    )
    return plan_spec(phase_spec(phase, *steps))


DONE = StepState(status=COMPLETE, attempt=3, started=NOW, finished=NOW, result=7)
FORCED = StepState(status=COMPLETE, forced=True, attempt=1, failure="", finished=NOW)


def after(
    *states: StepState, work: Work = ACTIVITY, phase: str = "web", spec: ServiceSpec = SPEC
) -> dict[int, StepState]:
    """The steps of a plan that takes the place of ``mixed()`` in that state."""
    former = Former(mixed(), PlanState(phases={0: PhaseState(steps=dict(enumerate(states)))}), SPEC)
    found = initial_state(mixed(work, phase), config("new", spec), {}, former)
    return found.phases[0].steps if found.phases else {}


OTHER = service(pod("web", 1, *TASKS.values(), cpus=9))


def test_other_work_that_was_complete_stays() -> None:
    assert after(DONE) == {0: StepState(status=COMPLETE, result=7)}
    assert after(DONE, spec=OTHER) == {0: StepState(status=COMPLETE, result=7)}
    assert after(DONE.but(status=STARTED)) == {}
    assert after(DONE, work=ACTIVITY.but(input=2)) == {}
    assert after(DONE, work=SleepWork(duration=timedelta(1))) == {}
    assert after(DONE, phase="another") == {}
    assert initial_state(mixed(), config("new", SPEC), {}) == PlanState()


def test_a_forced_pod_stays_while_it_does_not_differ() -> None:
    forced = StepState(status=COMPLETE, forced=True)
    assert after(StepState(), FORCED) == {1: forced}
    assert after(StepState(), FORCED, spec=OTHER) == {}
    assert after(StepState(), FORCED.but(forced=False)) == {}  # the record decides
    known = Former.forced(mixed(), ["web/web-0", "web/no-such"], SPEC)
    assert initial_state(mixed(), config("new", SPEC), {}, known) == PlanState(
        phases={0: PhaseState(steps={1: forced})}
    )


def test_a_forced_pod_that_got_there_is_just_complete() -> None:
    former = Former.forced(mixed(), ["web/web-0"], SPEC)
    state = initial_state(mixed(), config("new", SPEC), by_name(launch("run")), former)
    assert state.phases[0].steps == {1: StepState(status=COMPLETE)}


# --- whatever runs --------------------------------------------------------------------------------

VERSIONS = [
    (cpus, cmd, count) for cpus in (0.1, 0.2) for cmd in ("./a", "./b") for count in (1, 2, 3)
]


def version(cpus: float, cmd: str, count: int, strategy: str = "serial") -> ServiceSpec:
    tasks = (task(cmd=cmd), task("once", Goal.ONCE), task("checked", readiness_check=READY))
    lists: tuple[tuple[str, ...], ...] = (("once",), ("server", "checked"))
    return service(
        pod("web", count, *tasks, cpus=cpus, placement=f"hostname:MAX_PER:{count}"),
        pod("whole", count, task(), cpus=cpus),
        plans={
            "deploy": PlanYaml(
                phases={
                    "web": PhaseYaml(pod="web", strategy=strategy, steps=({"default": lists},)),
                    "whole": PhaseYaml(pod="whole", strategy=strategy),
                }
            )
        },
    )


SPECS = {str(i): version(*one) for i, one in enumerate(VERSIONS)}
CONFIG_IDS = sorted(SPECS)


@st.composite
def launches(draw: st.DrawFn) -> dict[str, TaskRecord]:
    found: dict[str, TaskRecord] = {}
    for kind, names in (("web", ("server", "once", "checked")), ("whole", ("server",))):
        for index in range(3):
            for name in names:
                if not draw(st.integers(0, 9)):
                    continue
                config_id = draw(st.sampled_from(CONFIG_IDS))
                one = record_of(
                    SPECS[config_id],
                    kind,
                    index,
                    draw(st.none() | st.sampled_from([RUNNING] * 9 + list(TaskState))),
                    name=name,
                    config_id=config_id,
                    ready=draw(st.sampled_from([None, False, True, True])),
                    paused=not draw(st.integers(0, 9)),
                    permanently_failed=not draw(st.integers(0, 9)),
                )
                found[one.name] = one
    return found


def same(kind: str, one: str, other: str) -> bool:
    """Whether two versions launch the same, by what they were made from."""
    (cpus, cmd, _), (other_cpus, other_cmd, _) = VERSIONS[int(one)], VERSIONS[int(other)]
    return cpus == other_cpus and (kind == "whole" or cmd == other_cmd)


@given(runs=launches(), target=st.sampled_from(CONFIG_IDS))
def test_no_step_is_complete_whose_tasks_would_need_a_restart(
    runs: dict[str, TaskRecord], target: str
) -> None:
    found = relabelled(runs, SPECS, target)
    (made,) = generate(SPECS[target])
    board = PlanBoard(made, initial_state(made, config(target, SPECS[target]), found))
    for phase in board.phases:
        for step, state in zip(phase.spec.steps, phase.steps, strict=True):
            assert isinstance(step.work, PodWork)
            names = [f"{step.work.pod}-{step.work.index}-{name}" for name in step.work.tasks]
            event(state.status.value)
            for one in (runs[name] for name in names if name in runs):
                fits = same(one.pod, one.config_id, target)
                if state.status is COMPLETE and one.status and one.status.state is RUNNING:
                    assert fits or one.permanently_failed
                if one.task_id in state.tasks:  # taken up
                    assert fits or (one.task == "once" and not one.live)
            if state.status is COMPLETE:
                assert set(names) <= set(runs)
            if state.status in (STARTING, STARTED):
                assert any(runs[name].live for name in names)


@given(
    st.sampled_from(VERSIONS),
    st.sampled_from(["serial", "parallel", "canary", "parallel-canary"]),
    st.booleans(),
)
def test_what_runs_and_does_not_change_is_complete(
    made_of: tuple[float, str, int], strategy: str, again: bool
) -> None:
    spec = version(*made_of, strategy)
    runs = {
        name: one.but(status=one.status.but(ready=True)) if one.check and one.status else one
        for name, one in running(spec, "old" if again else "new").items()
    }
    board = changed(spec, spec, runs)
    assert board.status is COMPLETE
    assert {step.status for phase in board.phases for step in phase.steps} == {COMPLETE}
    assert not any(phase.canary for phase in board.phases)


def test_the_plan_s_own_canary_skips_phases_that_are_complete() -> None:
    spec = service(pod("a", 1), pod("b", 1), pod("c", 1, cpus=0.2))
    old = service(pod("a", 1), pod("b", 1), pod("c", 1))
    found = relabelled(running(old), {"old": old, "new": spec}, "new")
    (made,) = generate(spec)
    made = made.but(strategy=StrategySpec(name="canary"))
    board = PlanBoard(made, initial_state(made, config("new", spec), found))
    assert [phase.gate for phase in board.phases] == [False, False, True]
