"""Durations, as arguments of builders."""

from datetime import timedelta

Length = timedelta | float | str
"""A timedelta, a number of seconds, or a text as in plan files: ``500ms``, ``30s``, ``1h30m``."""


def seconds(number: float) -> timedelta:
    """Return a duration of so many seconds."""
    return timedelta(seconds=number)


def minutes(number: float) -> timedelta:
    """Return a duration of so many minutes."""
    return timedelta(minutes=number)


def hours(number: float) -> timedelta:
    """Return a duration of so many hours."""
    return timedelta(hours=number)


def file_value(length: Length | None) -> float | str | None:
    """Return a duration as plan files have it: the JSON of a timedelta would be ISO 8601."""
    return length.total_seconds() if isinstance(length, timedelta) else length
