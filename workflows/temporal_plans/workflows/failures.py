"""What failed, in words."""

from temporalio.exceptions import FailureError

from temporal_plans.domain.transitions import shortened


def failure_text(error: BaseException) -> str:
    """The innermost cause says most; its type leads when it has one. Cut when it is long."""
    while isinstance(error, FailureError) and error.cause is not None:
        error = error.cause
    if isinstance(error, FailureError):
        kind = getattr(error, "type", None)
        return shortened(f"{kind}: {error.message}" if kind else error.message)
    return shortened(f"{type(error).__name__}: {error}")
