"""What failed, in words."""

from temporalio.exceptions import FailureError


def failure_text(error: BaseException) -> str:
    """The innermost cause says most; its type leads when it has one."""
    while isinstance(error, FailureError) and error.cause is not None:
        error = error.cause
    if isinstance(error, FailureError):
        kind = getattr(error, "type", None)
        return f"{kind}: {error.message}" if kind else error.message
    return f"{type(error).__name__}: {error}"
