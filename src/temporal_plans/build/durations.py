"""Lengths of time as builders take them."""

from datetime import timedelta

Length = timedelta | float | str
"""A timedelta, a number of seconds, or a text as in plan files: ``500ms``, ``30s``, ``1h30m``."""


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def hours(number: float) -> timedelta:
    return timedelta(hours=number)


def written(length: Length | None) -> float | str | None:
    """As plan files write it: the JSON of a timedelta would be ISO 8601."""
    return length.total_seconds() if isinstance(length, timedelta) else length
