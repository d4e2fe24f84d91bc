"""A guard against input that would block a workflow (design 4).

A plain exception in a message handler makes Temporal retry the workflow task without limit, and an
ApplicationError in a signal handler fails the whole workflow. An operator's typo must do neither.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError, FailureError, is_cancelled_exception
from temporalio.worker import (
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
)

from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.values.refusal import Refusal, RefusedError
from temporal_plans.workflows.mechanics.externs import PLUGIN


class PlansInterceptor(Interceptor):
    """Installs the guard, and passes ``externs`` to workflow code (``mechanics.externs``)."""

    def __init__(self, externs: Mapping[str, object], *, guard: bool = True) -> None:
        objects = {PLUGIN: True, **externs}
        self._externs = {name: partial(_identity, value) for name, value in objects.items()}
        self._guard = guard

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        input.unsafe_extern_functions.update(self._externs)
        return GuardedInbound if self._guard else None


def _identity(value: object) -> object:
    return value


class GuardedInbound(WorkflowInboundInterceptor):
    """Turns a handler's exception into an entry of the workflow's log, or the update's failure."""

    async def handle_signal(self, input: HandleSignalInput) -> None:
        try:
            await super().handle_signal(input)
        except Exception as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("signal %s failed: %s", input.signal, error)
            record_problem(input.signal, error)

    def handle_update_validator(self, input: HandleUpdateInput) -> None:
        refusal = update_refusal(input)
        if refusal is not None:
            raise refusal_error(refusal)
        try:
            super().handle_update_validator(input)
        except RefusedError as error:
            raise refusal_error(error.refusal) from None

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        try:
            return await super().handle_update_handler(input)
        except Exception as error:
            if isinstance(error, FailureError) or is_cancelled_exception(error):
                raise
            if isinstance(error, RefusedError):
                raise refusal_error(error.refusal) from None
            raise ApplicationError(
                f"{input.update}: {error}", type=type(error).__name__, non_retryable=True
            ) from error


def update_refusal(input: HandleUpdateInput) -> Refusal | None:
    """Return why the workflow does not take an update, whatever it is about, if it can say so."""
    refusal = getattr(workflow.instance(), "update_refusal", None)
    if refusal is None:
        return None
    answer: Refusal | None = refusal(input.update, input.args[0] if input.args else None)
    return answer


def record_problem(name: str, error: Exception) -> None:
    """Record a message whose handler failed in the workflow's command log, if it has one."""
    record = getattr(workflow.instance(), "record_problem", None)
    if record is not None:
        record(name, f"{type(error).__name__}: {error}")
