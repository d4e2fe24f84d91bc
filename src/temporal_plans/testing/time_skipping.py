"""Time skipping: the server moves the clock of a plan on while nothing is at work for it.

The dev server can do so for single workflows; the SDK's separate test server is not needed.
"""

from typing import Any

from temporalio.api.common.v1 import TimeSkippingConfig
from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowHandle,
)

DYNAMIC_CONFIG = {"frontend.WorkflowTimeSkippingEnabled": "true"}
"""The setting with which the server accepts such workflows."""

_SKIPS_LIMIT = 100_000
"""Skips of one plan; the server's own limit is some hundred."""


class TimeSkipping(Interceptor):
    """Starts plans with time skipping. Their children, phases and steps, inherit it."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Starting(next)


class _Starting(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        if input.workflow == "Plan":
            input.time_skipping_config = TimeSkippingConfig(
                enabled=True, max_session_skip_count=_SKIPS_LIMIT
            )
        return await super().start_workflow(input)
