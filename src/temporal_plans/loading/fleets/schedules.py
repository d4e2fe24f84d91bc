"""Weekly schedules in a time zone, and the absolute intervals that they stand for.

The clock on the wall counts: a minute that a change of the clock leaves out is in no interval, and
an hour that it repeats is in an interval both times.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.names import did_you_mean
from temporal_plans.loading.fleets.time_zones import offsets, zone_names
from temporal_plans.loading.forms.fields import field_error

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_INTERVAL = re.compile(
    rf"({'|'.join(DAYS)})/([01]\d|2[0-4]):([0-5]\d)-({'|'.join(DAYS)})/([01]\d|2[0-4]):([0-5]\d)"
)
_WEEK = timedelta(days=7)
_MONDAY = datetime(2001, 1, 1)
"""A Monday, as the clock on the wall has it."""


def _checked_interval(text: str) -> str:
    match = _INTERVAL.fullmatch(text)
    if match is None or _minute(match, 1) is None or _minute(match, 4) is None:
        raise field_error("must be an interval of a week", "for example MONDAY/22:00-TUESDAY/06:00")
    if _minute(match, 1) == _minute(match, 4):
        raise field_error("begins and ends at the same time", "use the window all-time")
    return text


def _minute(match: re.Match[str], group: int) -> timedelta | None:
    """Return a time of the week; None for a time after 24:00."""
    hour, minute = int(match[group + 1]), int(match[group + 2])
    if hour == 24 and minute:
        return None
    days = DAYS.index(match[group])
    return timedelta(days=days, hours=hour, minutes=minute) % _WEEK


def _checked_zone(name: str) -> str:
    if name not in zone_names():
        fix = did_you_mean(name, zone_names()) or "for example Europe/Berlin or UTC"
        raise field_error("is not a time zone", fix)
    return name


class WeeklySchedule(Value):
    """Intervals that repeat every week."""

    time_zone_name: Annotated[str, AfterValidator(_checked_zone)] = Field(
        description="The time zone of the times, such as `Europe/Berlin`."
    )
    time_intervals: tuple[Annotated[str, AfterValidator(_checked_interval)], ...] = Field(
        max_length=100,
        description="Intervals `DAY/HH:MM-DAY/HH:MM`; one may go over the end of the week.",
    )

    def window(self, start: datetime, end: datetime) -> Window:
        """Return the intervals between two times."""
        found: list[tuple[datetime, datetime]] = []
        parts = offsets(self.time_zone_name, start.astimezone(UTC), end.astimezone(UTC))
        for begin, until, offset in parts:
            for a, b in self._on_the_wall(begin + offset, until + offset):
                found.append((max(a - offset, begin), min(b - offset, until)))
        return Window.of(found, end.astimezone(UTC))

    def _on_the_wall(self, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
        """Return the intervals that touch a time, in times of the clock on the wall that are
        written as UTC."""
        monday = _MONDAY.replace(tzinfo=UTC)
        week = monday + ((start - monday) // _WEEK - 1) * _WEEK
        found: list[tuple[datetime, datetime]] = []
        while week < end:
            for text in self.time_intervals:
                match = _INTERVAL.fullmatch(text)
                assert match is not None
                first, last = _minute(match, 1), _minute(match, 4)
                assert first is not None
                assert last is not None
                length = (last - first) % _WEEK
                begin = week + first
                if begin < end and begin + length > start:
                    found.append((begin, begin + length))
            week += _WEEK
        return found
