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
    if wrong_values := _wrong_values(error, arguments):
        return wrong_values, USAGE
    if not isinstance(error, UserFacingError):
        return None
    return str(error), USAGE if error.usage else FAILED


def _wrong_values(error: BaseException, arguments: Sequence[str]) -> str:
    """Return what is wrong with values of the command line that a message can't have, such as a
    text that is too long; empty for any other error."""
    from pydantic import BaseModel, ValidationError

    from temporal_plans.domain.values.complaints import complaints

    if not isinstance(error, ValidationError):
        return ""
    given = [str(fault["input"]) for fault in error.errors(include_url=False)]
    if not all(any(text in argument for argument in arguments) for text in given):
        return ""
    return "\n".join(map(str, complaints(error, BaseModel)))


def _not_unicode(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is not UTF-8."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            return argument
    return None
