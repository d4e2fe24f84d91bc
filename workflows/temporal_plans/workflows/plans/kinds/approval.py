"""A step that waits for an operator's continue."""

from temporalio import workflow

from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.plans import transitions
from temporal_plans.workflows.plans.attempt import StepAttempt


async def run(step: StepAttempt) -> None:
    """Set WAITING; the continue arrives as an order that completes the step."""
    work = step.work
    assert isinstance(work, ApprovalWork)
    reason = f"waits for approval: {work.message}" if work.message else "waits for approval"
    step.set(transitions.awaiting(step.state, reason, workflow.now()))
