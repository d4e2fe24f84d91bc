"""A step that waits for somebody's continue."""

from temporalio import workflow

from temporal_plans.domain import transitions
from temporal_plans.domain.plan import ApprovalWork
from temporal_plans.workflows.step_context import StepContext


async def await_approval(step: StepContext) -> None:
    """Reads WAITING from here on; the continue comes as an order that completes the step."""
    work = step.work
    assert isinstance(work, ApprovalWork)
    reason = f"waits for approval: {work.message}" if work.message else "waits for approval"
    step.set(transitions.awaiting(step.state, reason, workflow.now()))
