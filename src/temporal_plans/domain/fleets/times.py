"""Times that documents and requests give.

Decisions add durations to them: a time near the ends of the calendar would then be out of range,
in the middle of a workflow. Numbers are refused: they would be seconds since 1970.
"""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator
from pydantic_core import PydanticCustomError

from temporal_plans.domain.values.model import Duration

_EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
_LATEST = datetime(5000, 1, 1, tzinfo=UTC)
_EXAMPLE = "for example 2026-01-05T08:30:00Z"


def in_text(time: datetime) -> str:
    """Return a time as sentences for people have it, to the second."""
    return time.isoformat(timespec="seconds")


LONGEST = timedelta(days=3660)
"""The longest duration that is added to a time, but for those of settings, which are shorter."""


def _text_or_time(value: object) -> object:
    if not isinstance(value, str | datetime):
        raise _refused("must be a time", _EXAMPLE)
    return value


def _in_range(time: datetime) -> datetime:
    if not _EARLIEST <= time < _LATEST:
        raise _refused("is out of range", "use a year from 1900 to 4999")
    return time


def _not_longer(length: timedelta) -> timedelta:
    if length > LONGEST:
        raise _refused("is too long", f"use {LONGEST.days}d or less")
    return length


def _refused(message: str, fix: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "{message}", {"message": message, "fix": fix})


Time = Annotated[AwareDatetime, BeforeValidator(_text_or_time), AfterValidator(_in_range)]
"""A time with its offset from UTC, in a year from 1900 to 4999."""

Length = Annotated[Duration, AfterValidator(_not_longer)]
"""A duration that is added to a time."""
