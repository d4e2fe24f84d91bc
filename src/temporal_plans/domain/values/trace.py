"""Tracebacks of developers' code, in bounded text."""

import traceback

TRACE_LIMIT = 1200
"""Characters kept of a traceback: it is part of states and answers of bounded size."""


def trace_of(error: BaseException) -> str:
    """Return where an error was raised, the innermost call last: files, lines and functions.

    Source lines are left out, because workflow code may not read files.
    """
    frames = traceback.extract_tb(error.__traceback__, limit=None)
    calls = [f'File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]
    return ending_of("\n".join([*calls, f"{type(error).__name__}: {error}"]))


def ending_of(text: str, limit: int = TRACE_LIMIT) -> str:
    """Return the text, or ``...`` and its end: never more than ``limit`` characters."""
    return text if len(text) <= limit else f"...{text[len(text) - max(limit - 3, 0) :]}"[:limit]
