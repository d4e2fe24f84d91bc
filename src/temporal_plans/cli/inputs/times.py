"""Times on the command line."""

from datetime import UTC, datetime

import typer

_EARLIEST, _LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(5000, 1, 1, tzinfo=UTC)


def time_of(text: str | None, flag: str) -> datetime | None:
    """Return a time such as 2026-01-05T08:30:00Z, in UTC. Raises typer.BadParameter for any other
    text, and for a time without its offset from UTC."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        problem = "is not a time" if time is None else "has no time zone"
        raise typer.BadParameter(
            f"{text!r} {problem}; for example 2026-01-05T08:30:00Z", param_hint=flag
        )
    if not _EARLIEST <= time < _LATEST:
        raise typer.BadParameter(
            f"{text!r} is out of range; use a year from {_EARLIEST.year} to {_LATEST.year - 1}",
            param_hint=flag,
        )
    return time.astimezone(UTC)
