"""How long a task that failed after its step was done waits before it is brought back (reference
3.9, 6.4).

While a step follows a task, the back-off is the step's own (``domain.transitions``). This one is
the service's, by task instance name, and lives as long as the service: a crash loop that spans
many recoveries, or restarts of any process, goes on where it was.
"""

from datetime import datetime, timedelta

from temporal_plans.domain.backoff import PACE, Backoff
from temporal_plans.domain.model import CompactValue, Duration
from temporal_plans.domain.task import TaskState


class RestartDelay(CompactValue):
    """The back-off of one task instance.

    It may start again at ``until``; ``delay`` is the latest delay, zero before the first failure;
    ``failures`` have come in a row ``since`` then. The value stays when its time is over, so that
    the next failure goes on from it; forget it when somebody restarts or replaces the pod.
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
    """The delay after one more failure of a task that had been RUNNING for ``ran`` (None: never).

    It starts over only when the task ran for longer than the longest delay. The reference forgets
    the delay as soon as the task is RUNNING, which lets one that crashes a second later loop for
    ever without any delay.
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
    """What the end of a task that is meant to run makes of its delay.

    FAILED and ERROR are failures. FINISHED is none, but a task that ends at once must not spin, so
    it waits for PACE. KILLED, LOST and their like are nobody's fault and delay nothing. With
    GONE_BY_OPERATOR all is forgotten: its next place is another.
    """
    if state in (TaskState.FAILED, TaskState.ERROR):
        return after_failure(previous, ran, backoff, now)
    if state is TaskState.FINISHED:
        known = previous or RestartDelay(until=now, since=now)
        return known.but(until=max(known.until, now + PACE))
    return None if state is TaskState.GONE_BY_OPERATOR else previous
