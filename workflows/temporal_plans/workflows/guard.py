"""Keeps bad input from wedging a workflow (temporal.md 1.6).

A plain exception in a message handler makes Temporal retry the workflow task for ever, and an
ApplicationError in a signal handler fails the whole workflow. Neither may an operator's typo do.
"""

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

from temporal_plans.workflows.registry import EXTERN, Registry


class PlansInterceptor(Interceptor):
    """The guard, and the hand-over of the registry to workflow code."""

    def __init__(self, registry: Registry, *, guard: bool = True) -> None:
        self._registry = registry
        self._guard = guard

    def workflow_interceptor_class(
        self, input: WorkflowInterceptorClassInput
    ) -> type[WorkflowInboundInterceptor] | None:
        input.unsafe_extern_functions[EXTERN] = lambda: self._registry
        return GuardedInbound if self._guard else None


class GuardedInbound(WorkflowInboundInterceptor):
    """Handlers' exceptions become a line in the workflow's log, or the answer of the update."""

    async def handle_signal(self, input: HandleSignalInput) -> None:
        try:
            await super().handle_signal(input)
        except Exception as error:
            if is_cancelled_exception(error):
                raise
            workflow.logger.warning("signal %s was not understood: %s", input.signal, error)
            record_problem(input.signal, error)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:
        try:
            return await super().handle_update_handler(input)
        except Exception as error:
            if isinstance(error, FailureError) or is_cancelled_exception(error):
                raise
            raise ApplicationError(
                f"{input.update}: {error}", type=type(error).__name__, non_retryable=True
            ) from error


def record_problem(name: str, error: Exception) -> None:
    """Keep a message that was not understood where the workflow's ``log`` shows it."""
    record = getattr(workflow.instance(), "record_problem", None)
    if record is not None:
        record(name, f"{type(error).__name__}: {error}")
