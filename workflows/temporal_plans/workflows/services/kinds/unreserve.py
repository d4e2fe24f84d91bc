"""A step that releases a pod's reservation on an agent."""

from temporal_plans.domain.kinds.unreserve import UnreserveWork
from temporal_plans.messages.upkeep import ReleaseReservationInput
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.pod_owner import owner_of
from temporal_plans.workflows.services.upkeep_rounds import begin_release, until_done


async def run(step: StepAttempt) -> None:
    """Wait until the agent has destroyed the whole reservation: steps for the pod's other resources
    then find it done. Reads PREPARED."""
    work, owner = step.work, owner_of(step)
    assert isinstance(work, UnreserveWork)
    begin_release(step)
    request = ReleaseReservationInput(
        service=owner.workflow_id,
        pool=owner.pods.pool,
        key=work.key,
        reservation=work.reservation,
    )
    await until_done(step, "release_reservation", request)
