"""Times on the command line."""

from datetime import UTC, datetime

import typer


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
    try:
        return time.astimezone(UTC)
    except OverflowError as error:
        raise typer.BadParameter(f"{text!r} is out of range", param_hint=flag) from error
