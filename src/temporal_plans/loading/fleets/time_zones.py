"""Time zones, from the package ``tzdata`` alone: the data of an operating system differs between
machines."""

from bisect import bisect_right
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

_HOUR = timedelta(hours=1)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return the names of all time zones."""
    return frozenset(files("tzdata").joinpath("zones").read_text(encoding="utf-8").split())


@lru_cache(maxsize=1000)
def time_zone(name: str) -> ZoneInfo:
    """Return a time zone by its name, such as Europe/Berlin. Raises KeyError when there is none."""
    if name not in zone_names():
        raise KeyError(name)
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


@lru_cache(maxsize=1000)
def offsets(
    name: str, start: datetime, end: datetime
) -> tuple[tuple[datetime, datetime, timedelta], ...]:
    """Return the offsets of a zone from UTC between two times in UTC: for each the time from which
    and to before which it holds. Changes are found to the second."""
    zone = time_zone(name)
    found: list[tuple[datetime, datetime, timedelta]] = []
    begin, at = start, start
    while at < end:
        later = min(at + _HOUR, end)
        if _offset(zone, later) != _offset(zone, at):
            change = _change(zone, at, later)
            found.append((begin, change, _offset(zone, at)))
            begin = change
        at = later
    found.append((begin, end, _offset(zone, end)))
    return tuple(part for part in found if part[0] < part[1])


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()


def _change(zone: ZoneInfo, start: datetime, end: datetime) -> datetime:
    """Return the first second after ``start`` with another offset."""
    before = _offset(zone, start)
    seconds = range(int((end - start).total_seconds()))
    index = bisect_right(
        seconds, False, key=lambda s: _offset(zone, start + timedelta(seconds=s + 1)) != before
    )
    return (start + timedelta(seconds=index + 1)).astimezone(UTC)
