"""How an update says no."""

from temporalio.exceptions import ApplicationError


def refusal(code: int, text: str) -> ApplicationError:
    """To be raised by a validator or a handler: the caller is told why, and not to try again.
    ``code`` is the HTTP dialect's (reference 10)."""
    return ApplicationError(text, code, type="CommandRefused", non_retryable=True)
