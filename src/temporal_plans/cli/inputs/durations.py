"""Durations on the command line."""

from datetime import timedelta

import typer

from temporal_plans.domain.values.model import parse_duration


def duration_of(text: str, option: str, *, minimum: timedelta) -> timedelta:
    """Return the duration of ``90s`` or ``1h30m``, at least ``minimum``.

    Raises typer.BadParameter, a usage error, for any other text.
    """
    try:
        duration = parse_duration(text)
    except ValueError:  # longer than a timedelta can be
        duration = None
    if not isinstance(duration, timedelta) or duration < minimum:
        bound = f"at least {minimum.total_seconds():g}s"
        raise typer.BadParameter(
            f"not a duration of {bound} (found {text!r}); write for example 90s, 30m or 6h",
            param_hint=option,
        )
    return duration


def timeout_of(text: str | None, *, waits: bool, option: str = "--wait") -> timedelta | None:
    """Return the limit of ``--timeout``; None without one. Raises typer.BadParameter, also when
    the command does not wait."""
    if text is None:
        return None
    if not waits:
        raise typer.BadParameter(f"needs {option}, whose waiting it limits", param_hint="--timeout")
    return duration_of(text, "--timeout", minimum=timedelta(milliseconds=1))
