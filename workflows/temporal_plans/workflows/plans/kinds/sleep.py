"""A step that waits for a duration."""

from temporalio import workflow

from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.plans.status import Status
from temporal_plans.workflows.plans.attempt import StepAttempt


async def run(step: StepAttempt) -> None:
    """Wait until the duration has passed since the step began, across continue-as-new."""
    work = step.work
    assert isinstance(work, SleepWork)
    if step.state.status is Status.STARTING:
        step.committed = True
    else:
        step.begin()
    begun = step.state.started or workflow.now()
    await step.sleep_until(begun + work.duration)
