"""Refusals as the errors that activities, updates and workflows fail with."""

from temporalio.exceptions import ApplicationError

from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.messages.addresses import REFUSED


def refusal_error(
    refusal: Refusal,
    *details: object,
    text: str = "",
    type: str = REFUSED,
    non_retryable: bool = True,
) -> ApplicationError:
    """Return the failure of this refusal: its details are the refusal, then ``details``. Its
    message is ``text``, by default the reasons."""
    return ApplicationError(
        text or str(refusal), refusal, *details, type=type, non_retryable=non_retryable
    )
