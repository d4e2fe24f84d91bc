"""Moments of tests: they are given, never looked up."""

from datetime import UTC, datetime, timedelta

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """The moment so many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)
