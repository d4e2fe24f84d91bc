"""The message and the exit code for a command that failed."""

from collections.abc import Sequence

from temporal_plans.domain.values.failure import UserFacingError

FAILED, USAGE = 1, 2


def known_failure(error: BaseException, arguments: Sequence[str] = ()) -> tuple[str, int] | None:
    """Return the message and the exit code of an expected error; None for a bug.

    ``arguments`` are those of the command. One that is not UTF-8 may be the name of a file, but of
    nothing else: Temporal's libraries refuse it, each with an error of its own.
    """
    if not isinstance(error, UserFacingError) and (wrong := _not_unicode(arguments)) is not None:
        return f"argument: not UTF-8 (found {wrong!r}); write it in UTF-8", USAGE
    if not isinstance(error, UserFacingError):
        return None
    return str(error), USAGE if error.usage else FAILED


def _not_unicode(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is not UTF-8."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            return argument
    return None
