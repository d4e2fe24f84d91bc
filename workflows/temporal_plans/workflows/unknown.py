"""Answers for workflow types that do not exist."""

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.commands import suggest

KNOWN = ["Phase", "Plan", "Pool", "ScheduledRun", "Service", "Step"]


@workflow.defn(dynamic=True)
class UnknownWorkflow:
    """Without it a mistyped type would be retried for ever and look as if it ran."""

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> None:
        name = workflow.info().workflow_type
        raise ApplicationError(
            f"unknown workflow type {name}{suggest(name, KNOWN)}",
            type="UnknownWorkflowType",
            non_retryable=True,
        )
