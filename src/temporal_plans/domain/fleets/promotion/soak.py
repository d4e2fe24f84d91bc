"""How long an entity has had a version, and how healthy it was: time on weekends does not count.

Health is counted while it is reported, so that its history need not be kept.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from pydantic import Field

from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import Duration, Value

_WEEK = timedelta(days=7)
_WEEKDAYS = timedelta(days=5)
_MICROSECOND = timedelta(microseconds=1)
_MONDAY = datetime(2001, 1, 1, tzinfo=UTC)
WEEKDAYS_BEFORE = timedelta(days=120)
WEEKDAYS_AFTER = timedelta(days=60)
"""How far weekdays must be known before and after a time."""


class Condition(StrEnum):
    """How an entity is: healthy when all replicas are live and none is worse than DEFERRING,
    unhealthy when a live replica is in ERROR, else neither."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NEITHER = "neither"


class Soak(Value):
    """How an entity was since it has its version."""

    since: Time = Field(description="Since when it has the version.")
    healthy: Duration = Field(
        default=timedelta(), description="How long it was healthy up to `at`, weekends aside."
    )
    unhealthy: Duration = Field(
        default=timedelta(), description="How long it was in error up to `at`, weekends aside."
    )
    at: Time | None = Field(
        default=None,
        description="Up to when both were counted; without it they began with `since`. "
        "From then on the condition that is reported now counts.",
    )

    def counted(self, condition: Condition, until: datetime, weekdays: Window) -> "Soak":
        """Return the soak with the time up to ``until`` counted as of a condition."""
        start = self.at or self.since
        if until <= start:
            return self
        passed = weekdays.open_time(start, until)
        match condition:
            case Condition.HEALTHY:
                return self.but(at=until, healthy=self.healthy + passed)
            case Condition.UNHEALTHY:
                return self.but(at=until, unhealthy=self.unhealthy + passed)
            case Condition.NEITHER:
                return self.but(at=until)


@dataclass(frozen=True, slots=True)
class Measured:
    """A soak at a time: how long it has lasted (``passed``) and how long the entity was healthy and
    in error, weekends aside."""

    passed: timedelta
    healthy: timedelta
    unhealthy: timedelta
    condition: Condition
    now: datetime
    weekdays: Window

    @classmethod
    def of(cls, soak: Soak, condition: Condition, now: datetime, weekdays: Window) -> "Measured":
        counted = soak.counted(condition, now, weekdays)
        passed = weekdays.open_time(soak.since, now)
        return cls(passed, counted.healthy, counted.unhealthy, condition, now, weekdays)

    def is_healthy(self, wanted: timedelta, ratio: float) -> bool:
        """Return whether it has soaked for a time and was healthy in this part of it, at least."""
        part, whole = self._part(Condition.HEALTHY)
        return self.passed >= wanted and part >= _exact(ratio) * whole

    def is_unhealthy(self, wanted: timedelta, ratio: float) -> bool:
        """Return whether it has soaked for a time and was in error in more than this part of it."""
        part, whole = self._part(Condition.UNHEALTHY)
        return self.passed >= wanted and part > _exact(ratio) * whole

    def _part(self, of: Condition) -> tuple[int, int]:
        """Return the time in a condition and the whole; of no time the present is all."""
        part = self.healthy if of is Condition.HEALTHY else self.unhealthy
        return (_us(part), _us(self.passed)) if self.passed else (int(self.condition is of), 1)

    def next_change(self, wanted: timedelta, ratio: float, of: Condition) -> datetime | None:
        """Return the next time at which ``is_healthy`` or ``is_unhealthy`` may change: the soak is
        over, or after that the part crosses the ratio. None when it never will."""
        left = wanted - self.passed
        waits = [left] if left > timedelta() else []
        crossing = self._crossing(_exact(ratio), of)
        if crossing is not None and crossing > left:
            waits.append(crossing)
        return min((self._after(one) for one in waits), default=None)

    def _crossing(self, ratio: Fraction, of: Condition) -> timedelta | None:
        """Return after how long the part in a condition is on the other side of a ratio: it rises
        while the entity is in that condition, and falls while it is not."""
        if not self.passed:
            return None
        rising = self.condition is of
        part, whole = self._part(of)
        if rising and ratio < 1:
            wait = (ratio * whole - part) / (1 - ratio)
        elif not rising and ratio:
            wait = part / ratio - whole
        else:
            return None
        # "More than" begins, and "at least" ends, a microsecond after the two are equal.
        later = rising is (of is Condition.UNHEALTHY)
        if wait < 0 or (wait == 0 and not later):
            return None
        return (floor(wait) + 1 if later else ceil(wait)) * _MICROSECOND

    def _after(self, wait: timedelta) -> datetime:
        """Return when a time on weekdays will have passed, or up to when weekdays are known."""
        found = self.weekdays.time_of_open(self.now, wait)
        if found is not None:
            return found
        return self.weekdays.until or self.now + wait


def _us(length: timedelta) -> int:
    return length // _MICROSECOND


@lru_cache(maxsize=1000)
def _exact(ratio: float) -> Fraction:
    return Fraction(str(ratio))


def utc_weekdays(now: datetime) -> Window:
    """Return the time from Monday to Friday in UTC around a time."""
    return _utc_weekdays((now - _MONDAY) // _WEEK)


@lru_cache(maxsize=100)
def _utc_weekdays(week: int) -> Window:
    monday = _MONDAY + week * _WEEK
    before, after = WEEKDAYS_BEFORE // _WEEK + 1, WEEKDAYS_AFTER // _WEEK + 2
    mondays = [monday + n * _WEEK for n in range(-before, after)]
    return Window.of([(one, one + _WEEKDAYS) for one in mondays], mondays[-1] + _WEEK)
