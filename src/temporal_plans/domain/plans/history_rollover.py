"""When a phase with steps at work may continue as new.

A workflow that continues as new loses its children (design 12). So the phase first stops starting
steps and lets the running steps end; pods, approvals and sleeps are interrupted, with their state.
A step that can't be interrupted (an activity, or a launch that kills old tasks first) may delay
this: after ``LEAVE_TIMEOUT`` other steps are started again beside it, up to a hard limit of
history.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

LEAVE_TIMEOUT = timedelta(seconds=20)
"""How long running steps may delay a rollover before other steps are started again."""

HARD_LIMIT = 30_000
"""History events after which no step is started until the phase has continued as new."""


class HistoryRollover:
    """A rollover of a phase's history, ``under_way`` once the history is long enough."""

    def __init__(self) -> None:
        self._since: datetime | None = None
        self._blocking: frozenset[int] = frozenset()

    @property
    def under_way(self) -> bool:
        return self._since is not None

    def begin(self, now: datetime) -> None:
        if self._since is None:
            self._since = now

    def may_start(self, now: datetime, at_work: Iterable[int], history: int) -> bool:
        """Whether steps may be started; ``at_work`` are the steps that still run."""
        if self._since is None:
            return True
        working = frozenset(at_work)
        if self._blocking and not self._blocking & working:
            self._blocking, self._since = (
                frozenset(),
                now,
            )  # the blocking steps have ended: try again
        if not self._blocking and now - self._since >= LEAVE_TIMEOUT:
            self._blocking = working
        return bool(self._blocking) and history < HARD_LIMIT

    def time_left(self, now: datetime) -> timedelta | None:
        """Return after which time at most to ask again; None without need."""
        if self._since is None or self._blocking:
            return None
        return max(self._since + LEAVE_TIMEOUT - now, timedelta(milliseconds=1))
