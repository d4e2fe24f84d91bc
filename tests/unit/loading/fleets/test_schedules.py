"""Weekly schedules as absolute intervals."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from properties import examples
from temporal_plans.loading.fleets.schedules import DAYS, WeeklySchedule
from temporal_plans.loading.fleets.time_zones import time_zone

START, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 12, 31, tzinfo=UTC)


def _schedule(zone: str, *intervals: str) -> WeeklySchedule:
    return WeeklySchedule(time_zone_name=zone, time_intervals=intervals)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "interval", "time", "inside"),
    [
        ("UTC", "MONDAY/08:00-MONDAY/20:00", "2026-01-05T07:59:59", False),
        ("UTC", "MONDAY/08:00-MONDAY/20:00", "2026-01-05T08:00:00", True),
        ("UTC", "MONDAY/08:00-MONDAY/20:00", "2026-01-05T20:00:00", False),
        ("UTC", "SUNDAY/00:00-SUNDAY/24:00", "2026-01-04T23:59:59", True),
        ("UTC", "SUNDAY/00:00-SUNDAY/24:00", "2026-01-05T00:00:00", False),
        pytest.param(
            "America/New_York", "FRIDAY/22:00-MONDAY/06:00", "2026-01-11T17:00:00", True, id="T035"
        ),
        # 29 March 2026 in Berlin: 02:00 is followed by 03:00.
        pytest.param(
            "Europe/Berlin",
            "SUNDAY/02:15-SUNDAY/02:45",
            "2026-03-29T01:20:00",
            False,
            id="T036-gap",
        ),
        pytest.param(
            "Europe/Berlin", "SUNDAY/01:30-SUNDAY/03:30", "2026-03-29T00:30:00", True, id="T036-on"
        ),
        pytest.param(
            "Europe/Berlin",
            "SUNDAY/01:30-SUNDAY/03:30",
            "2026-03-29T01:30:00",
            False,
            id="T036-end",
        ),
        # 25 October 2026 in Berlin: 02:00 to 03:00 comes twice.
        pytest.param(
            "Europe/Berlin", "SUNDAY/02:15-SUNDAY/02:45", "2026-10-25T00:20:00", True, id="T036-1st"
        ),
        pytest.param(
            "Europe/Berlin", "SUNDAY/02:15-SUNDAY/02:45", "2026-10-25T00:50:00", False, id="T036-no"
        ),
        pytest.param(
            "Europe/Berlin", "SUNDAY/02:15-SUNDAY/02:45", "2026-10-25T01:20:00", True, id="T036-2nd"
        ),
    ],
)
def test_inside(zone: str, interval: str, time: str, inside: bool) -> None:
    assert _schedule(zone, interval).window(START, END).is_open(_time(time)) is inside


TIMES = st.builds(
    "{}/{:02}:{:02}".format,
    st.sampled_from(DAYS),
    st.integers(0, 23),
    st.sampled_from([0, 15, 30, 59]),
)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe")


@examples(40)
@given(
    st.sampled_from(ZONES),
    TIMES,
    TIMES,
    st.lists(st.datetimes(datetime(2026, 2, 1), datetime(2026, 11, 30)), min_size=1, max_size=20),
)
def test_the_clock_on_the_wall_decides(
    zone: str, first: str, last: str, times: list[datetime]
) -> None:
    if first == last:
        return
    window = _schedule(zone, f"{first}-{last}").window(START, END)
    begin, end = _minute_of_week(first), _minute_of_week(last)
    for naive in times:
        time = naive.replace(tzinfo=UTC)
        wall = time.astimezone(time_zone(zone))
        minute = timedelta(days=wall.weekday(), hours=wall.hour, minutes=wall.minute)
        inside = begin <= minute < end if begin < end else not end <= minute < begin
        assert window.is_open(time) is inside, (time, wall)


def _minute_of_week(text: str) -> timedelta:
    day, _, clock = text.partition("/")
    hour, _, minute = clock.partition(":")
    return timedelta(days=DAYS.index(day), hours=int(hour), minutes=int(minute))


@pytest.mark.parametrize(
    ("zone", "interval"),
    [
        ("UTC", "MONDAY/08:00"),
        ("UTC", "monday/08:00-MONDAY/09:00"),
        ("UTC", "MONDAY/24:01-TUESDAY/09:00"),
        ("UTC", "MONDAY/08:00-MONDAY/08:00"),
        ("UTC", "SUNDAY/24:00-MONDAY/00:00"),
        ("Europe/Berlinn", "MONDAY/08:00-MONDAY/09:00"),
        ("../etc/passwd", "MONDAY/08:00-MONDAY/09:00"),
    ],
)
def test_refused(zone: str, interval: str) -> None:
    with pytest.raises(ValidationError):
        _schedule(zone, interval)


def test_intervals_that_touch_are_one() -> None:
    days = [f"{one}/00:00-{one}/24:00" for one in DAYS]
    window = _schedule("Europe/Berlin", *days).window(START, END)
    assert window.intervals == ((START, END),)
