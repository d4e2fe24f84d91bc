"""What to tell people of a failure."""

from temporalio.exceptions import ApplicationError, FailureError


def failure_text(failure: BaseException | None) -> str:
    """A failure's innermost message, which is the one that was written for people."""
    while isinstance(failure, FailureError) and failure.cause is not None:
        failure = failure.cause
    if isinstance(failure, ApplicationError):
        return failure.message
    return str(failure) if failure is not None else "failed for no stated reason"
