"""The workflow that runs under every unknown workflow type."""

from collections.abc import Sequence

from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.values.names import suggestion

WORKFLOW_TYPES = [
    "Content",
    "Environment",
    "Instance",
    "Phase",
    "Plan",
    "Pool",
    "Product",
    "ScheduledRun",
    "Service",
    "Step",
]


@workflow.defn(dynamic=True)
class UnknownWorkflow:
    """Fails at once; without it, a mistyped type would be retried forever and appear to run."""

    @workflow.run
    async def run(self, args: Sequence[RawValue]) -> None:
        name = workflow.info().workflow_type
        raise ApplicationError(
            f"unknown workflow type {name}; {suggestion(name, WORKFLOW_TYPES)}",
            type="UnknownWorkflowType",
            non_retryable=True,
        )
