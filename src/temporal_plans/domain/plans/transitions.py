"""The step's state machine: every transition, in tables (behaviour 3.4, 3.5).

Rules for editors: everything that changes a step's status is here, as (state, event, now) -> state;
nothing here knows whether the step is a workflow of its own or runs inside its phase.
"""

import json
from datetime import datetime, timedelta
from typing import Any

from pydantic import AwareDatetime, Field, field_validator

from temporal_plans.domain.plans.backoff import RETRY_INTERVAL, Backoff
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.status import Status, least
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.model import CompactValue, Duration
from temporal_plans.domain.values.text import shortened
from temporal_plans.domain.values.trace import ending_of

KEPT_LIMIT = 4000
"""Bytes of what a step may keep, as JSON: it is carried with the state of its plan."""


class TaskProgress(CompactValue):
    """One task of the step's latest launch. ``sequence`` is that of the last applied report."""

    name: str
    goal: Goal
    check: bool = Field(default=False, description="has a readiness check")
    status: Status = Status.STARTING
    sequence: int = -1


class StepState(CompactValue):
    """The state of a step. ``status`` is as stored; ``shown`` is what users read.

    ``errors`` are faults found when the plan was made, and stay; ``failure`` is that of an attempt,
    and is cleared by a restart. ``reason`` says in words why the step does not move, and ``cause``
    is the cause, where the status does not give it. ``trace`` is the traceback of developers' code
    that failed. ``delays`` are the latest back-off delays by
    task name. ``kept`` is JSON that the step's kind remembers from attempt to attempt, of at most
    ``KEPT_LIMIT`` bytes; a restart forgets it, and so does the step's end.
    """

    status: Status = Status.PENDING
    interrupted: bool = False
    prepared: bool = False
    forced: bool = False
    attempt: int = 0
    tasks: dict[str, TaskProgress] = {}
    errors: tuple[str, ...] = ()
    failure: str = ""
    trace: str = ""
    reason: str = ""
    cause: Cause | None = None
    delays: dict[str, Duration] = {}
    delayed_until: AwareDatetime | None = None
    started: AwareDatetime | None = None
    finished: AwareDatetime | None = None
    result: Any = None
    kept: Any = None

    @field_validator("kept")
    @classmethod
    def _bounded(cls, value: Any) -> Any:
        return checked_kept(value)

    @property
    def shown(self) -> Status:
        """The status as read (behaviour 1.2): interrupted and not yet begun is WAITING."""
        if self.interrupted and self.status in (Status.PENDING, Status.PREPARED):
            return Status.WAITING
        return self.status

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE

    @property
    def touched(self) -> bool:
        """Whether it was worked on in this run of the plan: it was attempted, or is prepared."""
        return self.attempt > 0 or self.prepared

    @property
    def begun(self) -> bool:
        """Whether it was worked on and is not complete."""
        return self.touched and not self.complete

    @property
    def at_work(self) -> bool:
        """Whether it is under way, or waits for its next attempt or an approval."""
        return self.begun and self.status is not Status.ERROR

    @property
    def mirrored(self) -> "StepState":
        """The state without what only the step itself needs, as its parents mirror it."""
        return self.but(tasks={}, kept=None)

    def with_texts_of(self, limit: int) -> "StepState":
        """Return the state with its reason and its failure cut to ``limit`` characters; the
        failure never to nothing, for it is why the step is in ERROR."""
        if max(len(self.reason), len(self.failure), len(self.trace)) <= limit:
            return self
        return self.but(
            reason=shortened(self.reason, limit),
            failure=shortened(self.failure, max(limit, 20)),
            trace=ending_of(self.trace, limit),
        )

    @property
    def all_errors(self) -> tuple[str, ...]:
        return (*self.errors, self.failure) if self.failure else self.errors


def checked_kept(value: Any) -> Any:
    """Return a value that a step may keep. Raises ValueError for one that is too large, or that is
    no JSON."""
    try:
        size = len(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"kept: must be JSON ({error})") from error
    if size > KEPT_LIMIT:
        raise ValueError(f"kept: must be {KEPT_LIMIT} bytes at most (found {size}); keep less")
    return value


# The effect of a report on its task (behaviour 3.5) depends on the task's goal. RUNNING completes a
# task with the goal RUNNING only once its readiness check has passed.

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
    """Return the status that a report gives its task; None for a report that changes nothing."""
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


def with_reason(state: StepState, reason: str, cause: Cause | None = None) -> StepState:
    """Set what the step does or waits for, in words; ``cause`` where its status does not tell."""
    return state.but(reason=reason, cause=cause)


def prepared(state: StepState, reason: str) -> StepState:
    """Resources are requested: no agent fits so far, or the launch is yet to come."""
    if state.complete or state.errors:
        return state
    return state.but(status=Status.PREPARED, prepared=True, tasks={}, reason=reason, cause=None)


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
        cause=None,
    )


def working(state: StepState, now: datetime) -> StepState:
    """The step removes something: reads IN_PROGRESS (behaviour 7.2)."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(status=Status.IN_PROGRESS)


def releasing(state: StepState, now: datetime) -> StepState:
    """The step releases something: reads PREPARED until it has (behaviour 7.2, 8.2)."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(status=Status.PREPARED, prepared=True)


def awaiting(state: StepState, reason: str, now: datetime) -> StepState:
    """The step needs nothing but a continue: reads WAITING."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(status=Status.PENDING, interrupted=True, reason=reason)


def launched(state: StepState, tasks: dict[str, TaskProgress], now: datetime) -> StepState:
    """The step launches tasks, under new ids."""
    if state.complete or state.errors:
        return state
    return begun(state, now).but(tasks=tasks, prepared=True)


def reported(state: StepState, report: TaskStatus, backoff: Backoff, now: datetime) -> StepState:
    """Apply a report about a task. Ignored: other launches, late repeats, and when complete."""
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
    state = with_reason(state.but(tasks=tasks), shortened(report.message))
    if outcome is Status.DELAYED:
        state = _back_off(state, task.name, backoff, now)
    elif outcome is Status.COMPLETE or report.state is TaskState.GONE_BY_OPERATOR:
        state = state.but(delays={k: v for k, v in state.delays.items() if k != task.name})
    elif (
        report.state is TaskState.FINISHED
    ):  # its goal is RUNNING, so it is launched again: no faster than this
        state = state.but(delayed_until=max(state.delayed_until or now, now + RETRY_INTERVAL))
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


def failed(state: StepState, reason: str, trace: str = "") -> StepState:
    """An attempt failed permanently: the step reads ERROR until an operator restarts or forces it.
    The text is kept once, as the ``failure``; ``trace`` is the traceback of developers' code."""
    if state.complete:
        return state
    return state.but(
        status=Status.ERROR, failure=shortened(reason), trace=trace, reason="", cause=None
    )


def delayed(state: StepState, reason: str, backoff: Backoff, now: datetime) -> StepState:
    """An attempt without tasks failed and is retried after the back-off."""
    if state.complete:
        return state
    state = _back_off(state, "", backoff, now)
    status = Status.DELAYED if backoff.enabled else Status.PENDING
    return with_reason(state.but(status=status), shortened(reason))


def due(state: StepState) -> StepState:
    """The back-off is over."""
    if state.status is not Status.DELAYED:
        return state.but(delayed_until=None)
    tasks = {
        key: task.but(status=Status.PENDING) if task.status is Status.DELAYED else task
        for key, task in state.tasks.items()
    }  # or a report about another task of the same launch would delay the step forever
    return state.but(status=Status.PENDING, tasks=tasks, delayed_until=None)


def completed(state: StepState, now: datetime, result: Any = None) -> StepState:
    """The goal is reached. Idempotent."""
    if state.complete:
        return state
    return state.but(
        status=Status.COMPLETE,
        finished=now,
        reason="",
        cause=None,
        delayed_until=None,
        result=result,
        kept=None,
    )


def forced(state: StepState, now: datetime) -> StepState:
    """An operator forced the step to complete: nothing is killed, and its failure is cleared.
    Faults of the plan (``errors``) stay: they still forbid a restart."""
    if state.complete:
        return state
    return completed(state.but(forced=True, failure="", trace=""), now)


def restarted(state: StepState) -> StepState:
    """Reset to PENDING. The old launch is forgotten, so its late reports are ignored; an
    interrupted step proceeds (behaviour 10.2)."""
    return StepState(
        status=Status.ERROR if state.errors else Status.PENDING,
        attempt=0,
        errors=state.errors,
    )


def halted(state: StepState, reason: str) -> StepState:
    """The plan stops on an error of another step: the attempt is cancelled, and the step is done
    again later, with what it kept."""
    if not state.at_work:
        return state
    return StepState(errors=state.errors, reason=reason, cause=Cause.HALTED, kept=state.kept)


def resumed(state: StepState) -> StepState:
    """The plan no longer stops: a step that was halted may begin again."""
    return with_reason(state, "") if state.cause is Cause.HALTED else state


def delay_left(state: StepState, now: datetime) -> timedelta:
    """Return how long the step must still wait before its next attempt."""
    if state.delayed_until is None:
        return timedelta(0)
    return max(state.delayed_until - now, timedelta(0))
