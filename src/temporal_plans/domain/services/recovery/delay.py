"""The back-off of tasks that fail after their step is complete (behaviour 3.9, 6.4).

While a step follows a task, the back-off is the step's own (``plans.transitions``). This back-off
belongs to the service, by task instance name, and lives as long as the service: it continues across
recoveries and restarts of any process.
"""

from datetime import datetime, timedelta

from temporal_plans.domain.plans.backoff import RETRY_INTERVAL, Backoff
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import CompactValue, Duration


class RestartDelay(CompactValue):
    """The back-off of one task instance.

    The task may start again at ``until``; ``delay`` is the latest delay, zero before the first
    failure; ``failures`` is the count of failures in a row ``since`` then. The value is kept when
    its time is over, so that the next failure continues from it; an operator's restart or
    replacement of the pod deletes it.
    """

    delay: Duration = timedelta(0)
    until: datetime
    failures: int = 0
    since: datetime

    def pending(self, now: datetime) -> bool:
        """Whether the task must still wait."""
        return self.until > now


def after_failure(
    previous: RestartDelay | None, ran: timedelta | None, backoff: Backoff, now: datetime
) -> RestartDelay:
    """Return the delay after one more failure of a task that was RUNNING for ``ran`` (None: never).

    It is reset only when the task ran for longer than the longest delay. If RUNNING reset it at
    once, a task that crashes a second later would loop forever without any delay.
    """
    if previous is None or (ran is not None and ran > backoff.maximum):
        previous = RestartDelay(until=now, since=now)
    delay = backoff.after(previous.delay or None)
    return RestartDelay(
        delay=delay, until=now + delay, failures=previous.failures + 1, since=previous.since
    )


def after_end(
    previous: RestartDelay | None,
    state: TaskState,
    ran: timedelta | None,
    backoff: Backoff,
    now: datetime,
) -> RestartDelay | None:
    """Return the delay after the end of a task with the goal RUNNING; None when it is deleted.

    FAILED and ERROR are failures. FINISHED is none, but a task that ends at once must not spin, so
    it waits for RETRY_INTERVAL. KILLED, LOST and the like are not the task's fault and delay
    nothing. GONE_BY_OPERATOR deletes the delay: its next place is another.
    """
    if state in (TaskState.FAILED, TaskState.ERROR):
        return after_failure(previous, ran, backoff, now)
    if state is TaskState.FINISHED:
        known = previous or RestartDelay(until=now, since=now)
        return known.but(until=max(known.until, now + RETRY_INTERVAL))
    return None if state is TaskState.GONE_BY_OPERATOR else previous
