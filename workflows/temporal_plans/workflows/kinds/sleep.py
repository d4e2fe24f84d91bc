"""A step that lets time pass."""

from temporalio import workflow

from temporal_plans.domain.plan import SleepWork
from temporal_plans.domain.status import Status
from temporal_plans.workflows.step_context import StepContext


async def run_sleep(step: StepContext) -> None:
    """Until that long after the step began, however often its workflow continued as new."""
    work = step.work
    assert isinstance(work, SleepWork)
    if step.state.status is Status.STARTING:
        step.committed = True
    else:
        step.begin()
    begun = step.state.started or workflow.now()
    await step.until_time(begun + work.duration)
