"""Refusals as the errors that updates fail with."""

from temporalio.exceptions import ApplicationError

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.values.refusal import Code, Refusal


def refused(code: Code, problem: str, *, fix: str = "") -> ApplicationError:
    """Return a refusal with one reason, for a validator or a handler to raise (not retryable)."""
    return refusal_error(Refusal.of(code, problem, fix=fix))
