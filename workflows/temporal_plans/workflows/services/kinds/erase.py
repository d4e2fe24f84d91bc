"""A step that removes a task from its service's records."""

from temporal_plans.domain.kinds.erase import EraseWork
from temporal_plans.messages.upkeep import EraseInput
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.pod_owner import owner_of
from temporal_plans.workflows.services.upkeep_rounds import begin_work, execute


async def run(step: StepAttempt) -> None:
    """Have the service remove the task's record."""
    work, owner = step.work, owner_of(step)
    assert isinstance(work, EraseWork)
    begin_work(step)
    await execute(step, "erase_task", EraseInput(service=owner.workflow_id, task=work.task))
