"""A step that kills a task permanently."""

from temporal_plans.domain.kinds.kill import KillWork
from temporal_plans.messages.upkeep import RetireInput
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.pod_owner import owner_of
from temporal_plans.workflows.services.upkeep_rounds import begin_work, until_done


async def run(step: StepAttempt) -> None:
    """Wait until the task is dead, or lost with its agent. Reads IN_PROGRESS."""
    work, owner = step.work, owner_of(step)
    assert isinstance(work, KillWork)
    begin_work(step)
    request = RetireInput(
        service=owner.workflow_id, pool=owner.pods.pool, task=work.task, task_id=work.task_id
    )
    await until_done(step, "retire_task", request)
