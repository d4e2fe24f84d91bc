"""Interprets failures of updates for their callers."""

from pydantic import ValidationError
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.mechanics.failure_text import failure_text, innermost_cause
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.values.refusal import Code, Refusal, RefusedError

RUN_ENDED = "AcceptedUpdateCompletedWorkflow"
"""The failure type of an update whose run ended meanwhile; a retry reaches the next run."""

UNPROCESSED = "UnprocessedUpdate"
"""The failure type of an update that the server gave up, because the worker that it was sent to
ended its workflow task without it, as may happen when that worker's connection broke. The workflow
has not seen it."""


def failure_type(cause: BaseException) -> str:
    """Return the type of a failed update's cause, or else its class."""
    type_name = cause.type if isinstance(cause, ApplicationError) else None
    return type_name or type(cause).__name__


def was_not_processed(cause: BaseException) -> bool:
    """Whether an update failed before its workflow decided about it: a retry may succeed."""
    return failure_type(cause) in (RUN_ENDED, UNPROCESSED)


def refusal_in(cause: BaseException) -> Refusal | None:
    """Return the refusal that a request failed with, whatever the failure's type; None when its
    details have none."""
    if not isinstance(cause, ApplicationError) or not cause.details:
        return None
    try:
        return Refusal.model_validate(cause.details[0])
    except ValidationError:  # details of another kind, or of a worker of another version
        return None


def refusal_of(cause: BaseException | None) -> Refusal:
    """Return the refusal that a request failed with, or else one with the failure's text."""
    if cause is None:
        return Refusal.of(Code.FAILED, failure_text(None))
    known = refusal_in(cause) or refusal_in(innermost_cause(cause))
    return known or Refusal.of(Code.FAILED, failure_text(cause))


def non_retryable(cause: BaseException, text: str) -> ApplicationError:
    """Return the failure as a non-retryable one of an activity: a retry would fail as well."""
    if isinstance(cause, RefusedError):
        return refusal_error(cause.refusal, text=text)
    details = cause.details if isinstance(cause, ApplicationError) else ()
    return ApplicationError(text, *details, type=failure_type(cause), non_retryable=True)
