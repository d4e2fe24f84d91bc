"""Texts of failures: the innermost cause has the message for people."""

from temporalio.exceptions import ApplicationError, FailureError

from temporal_plans.domain.values.text import shortened
from temporal_plans.domain.values.trace import ending_of, trace_of
from temporal_plans.messages.addresses import REFUSED


def innermost_cause(failure: BaseException) -> BaseException:
    """Return the innermost cause of Temporal's failures."""
    while isinstance(failure, FailureError) and failure.cause is not None:
        failure = failure.cause
    return failure


def message_of(failure: BaseException) -> str:
    """Return a failure's own message, without the type that its text starts with."""
    return failure.message if isinstance(failure, FailureError) else str(failure)


def failure_text(failure: BaseException | None) -> str:
    """Return the innermost message, for an operator."""
    if failure is None:
        return "failed without a reason"
    cause = innermost_cause(failure)
    return cause.message if isinstance(cause, ApplicationError) else str(cause)


def failure_trace(failure: BaseException) -> str:
    """Return where developers' code raised the innermost cause, in bounded text: in this workflow,
    or in an activity or a child workflow. Empty for a failure that workflow code raised on purpose,
    and for one of this package's own activities: their texts are complete."""
    cause = innermost_cause(failure)
    if not isinstance(cause, FailureError):
        return trace_of(cause)
    stack = cause.failure.stack_trace.strip() if cause.failure else ""
    raised_in = [line for line in stack.splitlines() if line.lstrip().startswith("File ")][-1:]
    own = any("/temporal_plans/" in line for line in raised_in)
    return "" if own else ending_of(stack)


def typed_failure_text(failure: BaseException) -> str:
    """Return the innermost message, shortened, after the error's type, for a step's errors. A
    refusal has no type in front: its reasons are complete."""
    cause = innermost_cause(failure)
    if not isinstance(cause, FailureError):
        return shortened(f"{type(cause).__name__}: {cause}")
    kind = getattr(cause, "type", None)
    return shortened(f"{kind}: {cause.message}" if kind and kind != REFUSED else cause.message)
