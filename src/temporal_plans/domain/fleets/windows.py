"""Times at which changes may begin, as absolute intervals.

Weekly schedules with time zones are expanded before they reach the domain: the data of time zones
differs between machines, and a replay must not.
"""

from bisect import bisect_right
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Self

from pydantic import AwareDatetime

from temporal_plans.domain.values.model import Value

Interval = tuple[AwareDatetime, AwareDatetime]
"""From the first time to before the second."""


class Window(Value):
    """Disjoint intervals in order. ``always``: open at all times. ``until`` is the time up to which
    the intervals are known; from then on the window counts as closed, so look again by then."""

    always: bool = False
    intervals: tuple[Interval, ...] = ()
    until: AwareDatetime | None = None

    @classmethod
    def of(cls, intervals: Iterable[tuple[datetime, datetime]], until: datetime | None) -> Self:
        """Return the window of any intervals: sorted, merged, empty ones left out."""
        merged: list[tuple[datetime, datetime]] = []
        for start, end in sorted(intervals):
            if start >= end:
                continue
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return cls.model_construct(always=False, intervals=tuple(merged), until=until)

    def is_open(self, now: datetime) -> bool:
        if self.always:
            return True
        index = bisect_right(self.intervals, now, key=_start) - 1
        return index >= 0 and now < self.intervals[index][1]

    def next_edge(self, now: datetime) -> datetime | None:
        """Return the next time after ``now`` at which the window opens, closes or is unknown."""
        if self.always:
            return None
        index = bisect_right(self.intervals, now, key=_start)
        edges = [self.until] if self.until is not None and self.until > now else []
        if index and self.intervals[index - 1][1] > now:
            edges.append(self.intervals[index - 1][1])
        if index < len(self.intervals):
            edges.append(self.intervals[index][0])
        return min(edges, default=None)

    def next_opening(self, now: datetime) -> datetime | None:
        """Return the next time after ``now`` at which the window opens; None when unknown."""
        index = bisect_right(self.intervals, now, key=_start)
        return self.intervals[index][0] if index < len(self.intervals) else None

    def open_time(self, start: datetime, end: datetime) -> timedelta:
        """Return how long the window is open between two times."""
        if self.always:
            return max(end - start, timedelta())
        parts = (min(b, end) - max(a, start) for a, b in self.intervals if b > start and a < end)
        return sum(parts, timedelta())

    def time_of_open(self, start: datetime, wanted: timedelta) -> datetime | None:
        """Return when the window will have been open for ``wanted`` since ``start``; None when that
        is beyond the known intervals."""
        if self.always:
            return start + wanted
        left = wanted
        for begin, end in self.intervals:
            if end <= start:
                continue
            begin = max(begin, start)
            if end - begin >= left:
                return begin + left
            left -= end - begin
        return None


ALL_TIME = Window(always=True)
ALL_TIME_NAME = "all-time"
"""The name of the window that is always open."""


def _start(interval: tuple[datetime, datetime]) -> datetime:
    return interval[0]


def union(one: Window, other: Window) -> Window:
    """Return when at least one of two windows is open."""
    if one.always or other.always:
        return ALL_TIME
    return Window.of((*one.intervals, *other.intervals), _earlier(one.until, other.until))


def intersection(one: Window, other: Window) -> Window:
    """Return when both of two windows are open."""
    if one.always:
        return other
    if other.always:
        return one
    found: list[tuple[datetime, datetime]] = []
    i = j = 0
    while i < len(one.intervals) and j < len(other.intervals):
        (a, b), (c, d) = one.intervals[i], other.intervals[j]
        if max(a, c) < min(b, d):
            found.append((max(a, c), min(b, d)))
        if b <= d:
            i += 1
        else:
            j += 1
    return Window.of(found, _earlier(one.until, other.until))


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    known = [time for time in (one, other) if time is not None]
    return min(known, default=None)
