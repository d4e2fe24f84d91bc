"""The step's state machine (behaviour 3.3 to 3.5)."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from pydantic import ValidationError

from builders.clock import NOW
from temporal_plans.domain.plans.backoff import RETRY_INTERVAL, Backoff
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import (
    StepState,
    TaskProgress,
    awaiting,
    begun,
    completed,
    delay_left,
    delayed,
    due,
    failed,
    forced,
    launched,
    prepared,
    reported,
    restarted,
    task_outcome,
)
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.text import LONGEST_TEXT, shortened

ON = Backoff(initial=timedelta(seconds=60), factor=1.5, maximum=timedelta(seconds=100))
OFF = Backoff(enabled=False)

PENDING, PREPARED, STARTING, STARTED, COMPLETE, DELAYED, ERROR, WAITING = (
    Status.PENDING,
    Status.PREPARED,
    Status.STARTING,
    Status.STARTED,
    Status.COMPLETE,
    Status.DELAYED,
    Status.ERROR,
    Status.WAITING,
)
RUNNING, FAILED, FINISHED = TaskState.RUNNING, TaskState.FAILED, TaskState.FINISHED


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def launch(
    state: StepState, *tasks: TaskProgress, number: int = 1, now: datetime = NOW
) -> StepState:
    return launched(state, {f"{task.name}/{number}": task for task in tasks}, now)


def say(
    state: StepState,
    task_id: str,
    what: TaskState,
    *,
    sequence: int = 1,
    ready: bool | None = None,
    backoff: Backoff = ON,
    now: datetime = NOW,
    message: str = "",
) -> StepState:
    report = TaskStatus(
        task_id=task_id,
        name=task_id.split("/")[0],
        state=what,
        sequence=sequence,
        at=now,
        ready=ready,
        message=message,
    )
    return reported(state, report, backoff, now)


SERVER = TaskProgress(name="server", goal=Goal.RUNNING)
CHECKED = TaskProgress(name="server", goal=Goal.RUNNING, check=True)
ONCE = TaskProgress(name="once", goal=Goal.ONCE)
FINISH = TaskProgress(name="finish", goal=Goal.FINISH)

# --- what a report makes of its task --------------------------------------------------------------

BEGINNING = dict.fromkeys((TaskState.STAGING, TaskState.STARTING), STARTING)
FAILURES = dict.fromkeys((TaskState.FAILED, TaskState.ERROR), DELAYED)
GONE = dict.fromkeys(
    (
        TaskState.KILLED,
        TaskState.KILLING,
        TaskState.LOST,
        TaskState.GONE,
        TaskState.DROPPED,
        TaskState.UNREACHABLE,
        TaskState.GONE_BY_OPERATOR,
    ),
    PENDING,
)
ALIKE: dict[TaskState, Status | None] = {
    **BEGINNING,
    **FAILURES,
    **GONE,
    TaskState.UNKNOWN: None,
}
OUTCOMES: dict[Goal, dict[TaskState, Status | None]] = {
    Goal.RUNNING: {**ALIKE, RUNNING: COMPLETE, FINISHED: PENDING},
    Goal.FINISH: {**ALIKE, RUNNING: STARTED, FINISHED: COMPLETE},
    Goal.ONCE: {**ALIKE, RUNNING: STARTED, FINISHED: COMPLETE},
}


@pytest.mark.parametrize(
    ("goal", "state", "expected"),
    [
        pytest.param(goal, state, OUTCOMES[goal][state], id=f"{goal}-{state}")
        for goal in Goal
        for state in TaskState
    ],
)
def test_what_a_report_makes_of_its_task(
    goal: Goal, state: TaskState, expected: Status | None
) -> None:
    report = TaskStatus(task_id="t", name="t", state=state, sequence=0, at=NOW)
    assert task_outcome(TaskProgress(name="t", goal=goal), report) is expected


@pytest.mark.parametrize(
    ("goal", "ready", "expected"),
    [
        pytest.param(Goal.RUNNING, None, STARTED, id="no-result-yet"),
        pytest.param(Goal.RUNNING, False, STARTED, id="not-passed"),
        pytest.param(Goal.RUNNING, True, COMPLETE, id="passed"),
        pytest.param(Goal.FINISH, True, STARTED, id="finish-does-not-care"),
        pytest.param(Goal.ONCE, True, STARTED, id="once-does-not-care"),
    ],
)
def test_a_readiness_check_gates_a_task_that_is_meant_to_run(
    goal: Goal, ready: bool | None, expected: Status
) -> None:
    report = TaskStatus(task_id="t", name="t", state=RUNNING, sequence=0, at=NOW, ready=ready)
    assert task_outcome(TaskProgress(name="t", goal=goal, check=True), report) is expected


# --- the worked paths of behaviour 3.5 ------------------------------------------------------------

Event = Callable[[StepState], StepState]


def no_offer(state: StepState) -> StepState:
    return prepared(state, "no offer fits")


def fits(*tasks: TaskProgress, number: int = 1) -> Event:
    return lambda state: launch(state, *tasks, number=number)


def says(
    task_id: str,
    what: TaskState,
    sequence: int,
    *,
    ready: bool | None = None,
    backoff: Backoff = ON,
) -> Event:
    return lambda state: say(state, task_id, what, sequence=sequence, ready=ready, backoff=backoff)


Path = list[tuple[Event, Status]]

PATHS: dict[str, Path] = {
    "no-offer-then-runs": [
        (no_offer, PREPARED),
        (no_offer, PREPARED),
        (fits(SERVER), STARTING),
        (says("server/1", TaskState.STAGING, 1), STARTING),
        (says("server/1", RUNNING, 2), COMPLETE),
    ],
    "fails-with-back-off-disabled": [
        (fits(SERVER), STARTING),
        (says("server/1", FAILED, 1, backoff=OFF), PENDING),
        (fits(SERVER, number=2), STARTING),
        (says("server/2", RUNNING, 1, backoff=OFF), COMPLETE),
    ],
    "fails-with-back-off": [
        (fits(SERVER), STARTING),
        (says("server/1", FAILED, 1), DELAYED),
        (due, PENDING),
        (fits(SERVER, number=2), STARTING),
    ],
    "readiness": [
        (fits(CHECKED), STARTING),
        (says("server/1", RUNNING, 1), STARTED),
        (says("server/1", RUNNING, 2, ready=False), STARTED),
        (says("server/1", RUNNING, 3, ready=True), COMPLETE),
        (says("server/1", FAILED, 4), COMPLETE),  # recovery's business now
    ],
    "finish": [
        (fits(FINISH), STARTING),
        (says("finish/1", RUNNING, 1), STARTED),
        (says("finish/1", FINISHED, 2), COMPLETE),
    ],
    "finish-that-fails-with-back-off": [
        (fits(FINISH), STARTING),
        (says("finish/1", RUNNING, 1), STARTED),
        (says("finish/1", FAILED, 2), DELAYED),
    ],
    "finish-that-fails-with-back-off-disabled": [
        (fits(FINISH), STARTING),
        (says("finish/1", RUNNING, 1), STARTED),
        (says("finish/1", FAILED, 2, backoff=OFF), PENDING),
    ],
    "two-tasks": [
        (fits(SERVER, ONCE), STARTING),
        (says("server/1", RUNNING, 1), STARTING),
        (says("once/1", RUNNING, 1), STARTED),
        (says("once/1", FINISHED, 2), COMPLETE),
    ],
    "started-may-go-back": [
        (fits(ONCE), STARTING),
        (says("once/1", RUNNING, 1), STARTED),
        (says("once/1", TaskState.STARTING, 2), STARTING),
        (says("once/1", TaskState.LOST, 3), PENDING),
    ],
    "unknown-says-nothing": [
        (fits(ONCE), STARTING),
        (says("once/1", RUNNING, 1), STARTED),
        (says("once/1", TaskState.UNKNOWN, 2), STARTED),
    ],
    "any-task-that-fails-delays-the-step": [
        (fits(SERVER, ONCE), STARTING),
        (says("server/1", RUNNING, 1), STARTING),
        (says("once/1", FAILED, 1), DELAYED),
        (says("server/1", FAILED, 2), DELAYED),
    ],
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS.keys())
def test_worked_paths(path: Path) -> None:
    state = StepState()
    assert state.shown is PENDING
    for number, (event, expected) in enumerate(path):
        state = event(state)
        assert state.shown is expected, f"event {number}"


# --- reports that count for nothing ---------------------------------------------------------------


def test_a_report_about_another_launch_changes_nothing() -> None:
    state = launch(say(launch(StepState(), ONCE), "once/1", FAILED), ONCE, number=2)
    assert say(state, "once/1", FINISHED, sequence=9) == state


def test_a_late_or_repeated_report_changes_nothing() -> None:
    state = say(launch(StepState(), ONCE), "once/1", RUNNING, sequence=5)
    assert say(state, "once/1", RUNNING, sequence=5) == state
    assert say(state, "once/1", FAILED, sequence=4) == state


@pytest.mark.parametrize("what", list(TaskState))
def test_complete_is_the_end(what: TaskState) -> None:
    state = say(launch(StepState(), SERVER), "server/1", RUNNING)
    assert state.complete
    assert say(state, "server/1", what, sequence=2) == state


def test_a_restart_forgets_the_old_launch() -> None:
    """Design 8: a late report cannot complete a step that was restarted."""
    state = restarted(say(launch(StepState(), ONCE), "once/1", RUNNING))
    assert state == StepState()
    assert say(state, "once/1", FINISHED, sequence=2) == state


def test_a_step_that_was_prepared_again_knows_no_tasks() -> None:
    state = prepared(say(launch(StepState(), ONCE), "once/1", TaskState.LOST), "no offer fits")
    assert (state.shown, say(state, "once/1", FINISHED, sequence=2)) == (PREPARED, state)


# --- errors ---------------------------------------------------------------------------------------

FAULTY = StepState(status=ERROR, errors=("two tasks use one resource set",))


NOT_MENDING: dict[str, Event] = {
    "prepared": no_offer,
    "launched": fits(SERVER),
    "begun": lambda state: begun(state, NOW),
    "awaiting": lambda state: awaiting(state, "", NOW),
    "restarted": restarted,
    "due": due,
}


@pytest.mark.parametrize("event", NOT_MENDING.values(), ids=NOT_MENDING.keys())
def test_faults_of_its_making_stay(event: Event) -> None:
    assert event(FAULTY).shown is ERROR


def test_a_forced_faulty_step_is_complete_and_in_error_again_when_restarted() -> None:
    state = forced(FAULTY, NOW)
    assert (state.shown, state.forced) == (COMPLETE, True)
    assert restarted(state) == FAULTY


def test_a_failure_stays_until_a_restart() -> None:
    state = failed(launch(StepState(), SERVER), "the agent refused it")
    assert (state.shown, state.all_errors) == (ERROR, ("the agent refused it",))
    late = say(state, "server/1", RUNNING)
    assert (late.shown, late.all_errors) == (ERROR, ("the agent refused it",))
    assert restarted(state) == StepState()


def test_a_failure_is_passed_over_by_force() -> None:
    state = forced(failed(begun(StepState(), NOW), "no such host"), NOW)
    assert (state.shown, state.all_errors) == (COMPLETE, ())


# --- back-off -------------------------------------------------------------------------------------


def test_the_delay_grows_to_its_maximum_and_is_kept_per_task() -> None:
    state = StepState()
    for number, seconds in enumerate([60, 90, 100, 100]):
        state = say(launch(due(state), SERVER, number=number), f"server/{number}", FAILED)
        assert delay_left(state, NOW) == timedelta(seconds=seconds)
    assert state.delays == {"server": timedelta(seconds=100)}
    other = say(launch(due(state), SERVER, ONCE, number=9), "once/9", FAILED)
    assert other.delays == {"server": timedelta(seconds=100), "once": timedelta(seconds=60)}


def test_the_longest_delay_of_two_tasks_counts() -> None:
    state = say(launch(StepState(), SERVER, ONCE), "server/1", FAILED, now=at(0))
    state = say(state, "once/1", FAILED, now=at(10))
    assert state.delayed_until == at(70)
    assert delay_left(state, at(69)) == timedelta(seconds=1)
    assert delay_left(state, at(71)) == timedelta(0)


def test_success_and_gone_by_operator_clear_the_delay() -> None:
    state = say(launch(StepState(), SERVER, ONCE), "server/1", FAILED)
    again = launch(due(state), SERVER, ONCE, number=2)
    assert again.delays == {"server": timedelta(seconds=60)}
    assert say(again, "server/2", RUNNING).delays == {}
    gone = say(again, "server/2", TaskState.GONE_BY_OPERATOR)
    assert (gone.shown, gone.delays) == (PENDING, {})
    assert say(again, "server/2", TaskState.KILLED).delays == state.delays


def test_a_restart_clears_the_delay() -> None:
    state = restarted(say(launch(StepState(), SERVER), "server/1", FAILED))
    assert (state.delays, delay_left(state, NOW)) == ({}, timedelta(0))


def test_once_the_delay_is_over_a_report_about_a_sibling_does_not_bring_it_back() -> None:
    state = say(launch(StepState(), SERVER, ONCE), "server/1", FAILED)
    assert state.shown is DELAYED
    state = due(state)
    assert (state.shown, delay_left(state, NOW)) == (PENDING, timedelta(0))
    state = say(state, "once/1", RUNNING)
    assert (state.shown, delay_left(state, NOW)) == (PENDING, timedelta(0))


def test_without_back_off_a_crash_loop_still_has_a_pace() -> None:
    state = say(launch(StepState(), SERVER), "server/1", FAILED, backoff=OFF)
    assert (state.shown, delay_left(state, NOW)) == (PENDING, RETRY_INTERVAL)


def test_a_task_that_is_meant_to_run_and_ends_well_is_started_again_no_faster() -> None:
    state = say(launch(StepState(), SERVER), "server/1", FINISHED)
    assert (state.shown, delay_left(state, NOW)) == (PENDING, RETRY_INTERVAL)
    assert delay_left(launch(state, SERVER, number=2), NOW) == timedelta(0)


def test_work_without_tasks_backs_off_too() -> None:
    state = delayed(begun(StepState(), NOW), "connection refused", ON, NOW)
    assert (state.shown, state.reason) == (DELAYED, "connection refused")
    assert delay_left(state, NOW) == timedelta(seconds=60)
    again = delayed(begun(due(state), NOW), "connection refused", ON, NOW)
    assert delay_left(again, NOW) == timedelta(seconds=90)
    assert delayed(begun(StepState(), NOW), "", OFF, NOW).shown is PENDING


def test_due_is_only_for_who_waits() -> None:
    state = launch(StepState(), SERVER)
    assert due(state) == state


# --- interrupts, approvals, force -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (PENDING, WAITING),
        (PREPARED, WAITING),
        (STARTING, STARTING),
        (STARTED, STARTED),
        (COMPLETE, COMPLETE),
        (DELAYED, DELAYED),
        (ERROR, ERROR),
    ],
)
def test_an_interrupt_masks_only_what_has_not_begun(status: Status, shown: Status) -> None:
    assert StepState(status=status, interrupted=True).shown is shown


def test_an_approval_waits_begun() -> None:
    state = awaiting(StepState(), "ask the owner", NOW)
    assert (state.shown, state.begun, state.reason) == (WAITING, True, "ask the owner")


COMPLETED = completed(begun(StepState(), NOW), NOW, result={"rows": 3})


LATE: dict[str, Event] = {
    "prepared": no_offer,
    "launched": fits(SERVER),
    "begun": lambda state: begun(state, at(9)),
    "awaiting": lambda state: awaiting(state, "", at(9)),
    "failed": lambda state: failed(state, "too late"),
    "delayed": lambda state: delayed(state, "too late", ON, at(9)),
    "completed": lambda state: completed(state, at(9), "again"),
    "forced": lambda state: forced(state, at(9)),
    "due": due,
}


@pytest.mark.parametrize("event", LATE.values(), ids=LATE.keys())
def test_nothing_but_a_restart_changes_a_complete_step(event: Event) -> None:
    assert event(COMPLETED) == COMPLETED


def test_begin_times_and_attempts() -> None:
    state = say(launch(StepState(), SERVER, now=at(1)), "server/1", FAILED, now=at(2))
    state = launch(due(state), SERVER, number=2, now=at(70))
    assert (state.attempt, state.started, state.finished) == (2, at(1), None)
    state = say(state, "server/2", RUNNING, now=at(75))
    assert (state.started, state.finished) == (at(1), at(75))


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(StepState(), id="new"),
        pytest.param(FAULTY, id="faulty"),
        pytest.param(COMPLETED, id="complete"),
        pytest.param(say(launch(StepState(), SERVER, CHECKED), "server/1", FAILED), id="delayed"),
        pytest.param(awaiting(StepState(), "why", NOW), id="awaiting"),
    ],
)
def test_a_step_is_carried_as_json(state: StepState) -> None:
    assert StepState.model_validate_json(state.model_dump_json()) == state


# --- bounds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "kept"),
    [(0, 0), (LONGEST_TEXT, LONGEST_TEXT), (LONGEST_TEXT + 1, LONGEST_TEXT), (10**6, LONGEST_TEXT)],
)
def test_a_long_text_is_cut(length: int, kept: int) -> None:
    cut = shortened("x" * length)
    assert (len(cut), cut.endswith("...")) == (kept, length > kept)


LONG = "x" * (LONGEST_TEXT + 1)
TEXTS: dict[str, tuple[Event, str, str]] = {
    "failed": (lambda state: failed(state, LONG), shortened(LONG), ""),
    "delayed": (lambda state: delayed(state, LONG, ON, NOW), "", shortened(LONG)),
    "reported": (lambda state: say(state, "server/1", FAILED, message=LONG), "", shortened(LONG)),
}


@pytest.mark.parametrize(("event", "failure", "reason"), TEXTS.values(), ids=TEXTS.keys())
def test_texts_are_kept_cut_and_once(event: Event, failure: str, reason: str) -> None:
    state = event(launch(StepState(), SERVER))
    assert (state.failure, state.reason) == (failure, reason)


@pytest.mark.parametrize("field", ["delayed_until", "started", "finished"])
def test_times_have_zones(field: str) -> None:
    read = StepState.model_validate_json(f'{{"{field}": "2026-01-01T00:00:00Z"}}')
    assert getattr(read, field) == NOW
    with pytest.raises(ValidationError, match="timezone"):
        StepState.model_validate_json(f'{{"{field}": "2026-01-01T00:00:00"}}')
