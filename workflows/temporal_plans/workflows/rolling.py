"""When a phase with steps at work may begin a new run of itself.

A workflow that continues as new loses its children (temporal.md 0.8). So the phase first stops
beginning steps and lets those at work end; pods, approvals and sleeps are left in the middle, with
their state. What can't be left, an activity or a launch that makes room for itself, may hold that
up: once patience is over, other steps are begun again beside it, up to a hard limit of history.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

PATIENCE = timedelta(seconds=20)
HARD_LIMIT = 30_000
"""History events after which nothing is begun until the phase could continue as new."""


class Rolling:
    """``under_way`` from the moment that the history is long enough."""

    def __init__(self) -> None:
        self._since: datetime | None = None
        self._in_the_way: frozenset[int] = frozenset()

    @property
    def under_way(self) -> bool:
        return self._since is not None

    def begin(self, now: datetime) -> None:
        if self._since is None:
            self._since = now

    def may_start(self, now: datetime, at_work: Iterable[int], history: int) -> bool:
        """Whether steps may be begun; ``at_work`` are those that have not been left so far."""
        if self._since is None:
            return True
        working = frozenset(at_work)
        if self._in_the_way and not self._in_the_way & working:
            self._in_the_way, self._since = frozenset(), now  # what held it up is over: try again
        if not self._in_the_way and now - self._since >= PATIENCE:
            self._in_the_way = working
        return bool(self._in_the_way) and history < HARD_LIMIT

    def patience(self, now: datetime) -> timedelta | None:
        """How long to wait at the most before asking again; None without need."""
        if self._since is None or self._in_the_way:
            return None
        return max(self._since + PATIENCE - now, timedelta(milliseconds=1))
