"""The step's state machine: every transition, in tables (reference 3.4, 3.5).

Rules for editors: everything that changes a step's status is here, as (state, event, now) -> state;
nothing here knows whether the step is a workflow of its own or runs inside its phase.
"""

from datetime import datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, Field

from temporal_plans.domain.backoff import PACE, Backoff
from temporal_plans.domain.model import CompactValue, Duration
from temporal_plans.domain.service import Goal
from temporal_plans.domain.status import Status, least
from temporal_plans.domain.task import TaskState, TaskStatus

LONGEST_TEXT = 1000
"""Characters kept of a text that others wrote: states are carried in payloads of bounded size."""


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """The text itself, or its beginning and ``...``: never more than ``limit`` characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


class TaskProgress(CompactValue):
    """One task of the step's latest launch. ``sequence`` is that of the last report used."""

    name: str
    goal: Goal
    check: bool = Field(default=False, description="has a readiness check")
    status: Status = Status.STARTING
    sequence: int = -1


class StepState(CompactValue):
    """All that is known of a step. ``status`` is as stored; ``shown`` is what is read.

    ``errors`` are faults of its making and stay; ``failure`` is that of an attempt, and is gone
    with a restart. ``reason`` says in words why it does not move. ``delays`` are the latest
    back-off delays by task name.
    """

    status: Status = Status.PENDING
    interrupted: bool = False
    prepared: bool = False
    forced: bool = False
    attempt: int = 0
    tasks: dict[str, TaskProgress] = {}
    errors: tuple[str, ...] = ()
    failure: str = ""
    reason: str = ""
    delays: dict[str, Duration] = {}
    delayed_until: AwareDatetime | None = None
    started: AwareDatetime | None = None
    finished: AwareDatetime | None = None
    result: Any = None

    @property
    def shown(self) -> Status:
        """The status as read (reference 1.2): interrupted and not yet begun is WAITING."""
        if self.interrupted and self.status in (Status.PENDING, Status.PREPARED):
            return Status.WAITING
        return self.status

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE

    @property
    def touched(self) -> bool:
        """Worked on in this run of the plan: it has been tried, or is prepared."""
        return self.attempt > 0 or self.prepared

    @property
    def begun(self) -> bool:
        """Worked on and not complete."""
        return self.touched and not self.complete

    @property
    def all_errors(self) -> tuple[str, ...]:
        return (*self.errors, self.failure) if self.failure else self.errors


# What a report makes of its task (reference 3.5), by what the task is meant to reach. RUNNING is
# told apart further: it completes a task that is meant to run once its readiness check has passed.

_BEGINNING = {TaskState.STAGING, TaskState.STARTING}
_FAILURES = {TaskState.FAILED, TaskState.ERROR}
_GONE = {
    TaskState.KILLED,
    TaskState.KILLING,
    TaskState.LOST,
    TaskState.GONE,
    TaskState.DROPPED,
    TaskState.UNREACHABLE,
    TaskState.GONE_BY_OPERATOR,
}


def task_outcome(task: TaskProgress, report: TaskStatus) -> Status | None:
    """The status that a report gives its task; None for a report that says nothing."""
    if report.state in _BEGINNING:
        return Status.STARTING
    if report.state is TaskState.RUNNING:
        ready = not task.check or report.ready is True
        return Status.COMPLETE if task.goal is Goal.RUNNING and ready else Status.STARTED
    if report.state is TaskState.FINISHED:
        return Status.PENDING if task.goal is Goal.RUNNING else Status.COMPLETE
    if report.state in _FAILURES:
        return Status.DELAYED
    if report.state in _GONE:
        return Status.PENDING
    return None


def prepared(state: StepState, reason: str) -> StepState:
    """Asked for resources; none fit so far, or the launch is yet to come."""
    if state.complete or state.errors:
        return state
    return state.but(status=Status.PREPARED, prepared=True, tasks={}, reason=reason)


def begun(state: StepState, now: datetime) -> StepState:
    """Work that launches no tasks is under way: an activity, a workflow, a sleep."""
    if state.complete or state.errors:
        return state
    return state.but(
        status=Status.STARTING,
        attempt=state.attempt + 1,
        started=state.started or now,
        delayed_until=None,
        reason="",
    )


def working(state: StepState, now: datetime) -> StepState:
    """Something that is there is being taken away: reads IN_PROGRESS (reference 7.2)."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(status=Status.IN_PROGRESS)


def releasing(state: StepState, now: datetime) -> StepState:
    """Something is being given back: reads PREPARED until it is (reference 7.2, 8.2)."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(status=Status.PREPARED, prepared=True)


def awaiting(state: StepState, reason: str, now: datetime) -> StepState:
    """Nothing is left to do but somebody's continue: reads WAITING."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(status=Status.PENDING, interrupted=True, reason=reason)


def launched(state: StepState, tasks: dict[str, TaskProgress], now: datetime) -> StepState:
    """Tasks are being started, under ids that no earlier launch had."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(tasks=tasks, prepared=True)


def reported(state: StepState, report: TaskStatus, backoff: Backoff, now: datetime) -> StepState:
    """A report about a task. Ignored: ids of other launches, late repeats, and when complete."""
    task = state.tasks.get(report.task_id)
    if task is None or state.complete or report.sequence <= task.sequence:
        return state
    outcome = task_outcome(task, report)
    if outcome is None:
        return state
    tasks = {
        **state.tasks,
        report.task_id: task.but(status=outcome, sequence=report.sequence),
    }
    state = state.but(tasks=tasks, reason=shortened(report.message))
    if outcome is Status.DELAYED:
        state = _back_off(state, task.name, backoff, now)
    elif outcome is Status.COMPLETE or report.state is TaskState.GONE_BY_OPERATOR:
        state = state.but(delays={k: v for k, v in state.delays.items() if k != task.name})
    elif report.state is TaskState.FINISHED:  # meant to run, so it runs again: no faster than this
        state = state.but(delayed_until=max(state.delayed_until or now, now + PACE))
    return _fold(state, backoff, now)


def _back_off(state: StepState, task: str, backoff: Backoff, now: datetime) -> StepState:
    delay = backoff.after(state.delays.get(task))
    until = max(state.delayed_until or now, now + delay)
    return state.but(delays={**state.delays, task: delay}, delayed_until=until)


def _fold(state: StepState, backoff: Backoff, now: datetime) -> StepState:
    if state.all_errors:
        return state.but(status=Status.ERROR)
    status = least(task.status for task in state.tasks.values())
    if status is Status.DELAYED and not backoff.enabled:
        status = Status.PENDING
    if status is Status.COMPLETE:
        return completed(state, now)
    return state.but(status=status)


def failed(state: StepState, reason: str) -> StepState:
    """An attempt failed for good: it reads ERROR until somebody restarts or forces the step. The
    text is kept once, as the ``failure``."""
    if state.complete:
        return state
    return state.but(status=Status.ERROR, failure=shortened(reason), reason="")


def delayed(state: StepState, reason: str, backoff: Backoff, now: datetime) -> StepState:
    """An attempt without tasks failed and is tried again after the back-off."""
    if state.complete:
        return state
    state = _back_off(state, "", backoff, now)
    status = Status.DELAYED if backoff.enabled else Status.PENDING
    return state.but(status=status, reason=shortened(reason))


def due(state: StepState) -> StepState:
    """The back-off is over."""
    if state.status is not Status.DELAYED:
        return state.but(delayed_until=None)
    tasks = {
        key: task.but(status=Status.PENDING) if task.status is Status.DELAYED else task
        for key, task in state.tasks.items()
    }  # or a report about another task of the same launch would delay the step for ever
    return state.but(status=Status.PENDING, tasks=tasks, delayed_until=None)


def completed(state: StepState, now: datetime, result: Any = None) -> StepState:
    """The goal is reached. Said again, it changes nothing."""
    if state.complete:
        return state
    return state.but(
        status=Status.COMPLETE, finished=now, reason="", delayed_until=None, result=result
    )


def forced(state: StepState, now: datetime) -> StepState:
    """Forced to complete: nothing is killed, whatever was wrong is passed over. The faults of its
    making stay on record: they still forbid a restart."""
    if state.complete:
        return state
    return completed(state.but(forced=True, failure=""), now)


def restarted(state: StepState) -> StepState:
    """Begin again from PENDING. The old launch is forgotten, so its late reports count for nothing;
    an interrupted step proceeds (reference 10.2)."""
    return StepState(
        status=Status.ERROR if state.errors else Status.PENDING,
        attempt=0,
        errors=state.errors,
    )


def delay_left(state: StepState, now: datetime) -> timedelta:
    """How long the step must still wait before its next try."""
    if state.delayed_until is None:
        return timedelta(0)
    return max(state.delayed_until - now, timedelta(0))
