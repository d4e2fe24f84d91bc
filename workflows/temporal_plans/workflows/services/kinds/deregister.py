"""The last step of an uninstall."""

from temporal_plans.domain.kinds.deregister import DeregisterWork
from temporal_plans.messages.upkeep import DeregisterInput
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.pod_owner import owner_of
from temporal_plans.workflows.services.upkeep_rounds import begin_release, execute


async def run(step: StepAttempt) -> None:
    """Release what the service still holds in the pool; the service ends with its plan."""
    work, owner = step.work, owner_of(step)
    assert isinstance(work, DeregisterWork)
    begin_release(step)
    request = DeregisterInput(service=owner.workflow_id, pool=owner.pods.pool)
    await execute(step, "deregister", request)
