"""The leases of a service: assets that it grants to the phases of its plans (design 4)."""

from temporalio import workflow

from temporal_plans.domain.plans import leases
from temporal_plans.domain.plans.leases import Lease, LeaseState, Settlement
from temporal_plans.domain.services.plan_names import RECOVERY
from temporal_plans.domain.services.recovery.keeper import RecoveryKeeper
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.messages.plans import LeaseGrant, LeaseRequest
from temporal_plans.workflows.owners.owner import Owner
from temporal_plans.workflows.services.deployments import ServiceDeployments


class ServiceLeases(Owner):
    """A base class of the Service workflow: the handler of lease requests."""

    _deployments: ServiceDeployments
    _leases: LeaseState
    _recovery: RecoveryKeeper
    _tasks: TaskBook

    @workflow.signal(name="leases", description="From a phase: leases requested and returned.")
    def on_leases(self, request: LeaseRequest) -> None:
        for lease in self._leases.held:
            if lease.phase == request.phase and (request.ended or lease.step in request.returns):
                self._on_returned(lease)
        settlement = leases.request(
            self._leases, request.wants, request.returns, request.phase, request.ended
        )
        self._settle(settlement)

    def plan_over(self, plan: str, workflow_id: str) -> None:
        """Release the plan's leases; its steps no longer follow tasks."""
        self._tasks.forget_owners(workflow_id)
        self._settle(leases.drop_plan(self._leases, plan))

    def _on_returned(self, lease: Lease) -> None:
        """Report the tasks to recovery that ended after their step was done with them."""
        for record in self._tasks.forget_owner(lease):
            has_run = record.goal == Goal.RUNNING and record.running_since is not None
            if has_run and not record.live:
                self._recovery.ended(record, self._deployments.input.backoff, workflow.now())

    def _settle(self, settlement: Settlement) -> None:
        """Keep the new state, and send every phase its grants and the leases it waits for."""
        self._leases = settlement.state
        granted: dict[str, dict[int, int]] = {}
        held: dict[str, dict[int, str]] = {}
        for lease in settlement.grants:
            if lease.plan == RECOVERY:
                self._recovery.begins(lease)
            granted.setdefault(lease.phase, {})[lease.step] = lease.ticket
        for (phase, step), holder in settlement.held.items():
            held.setdefault(phase, {})[step] = holder
        for phase in sorted({*granted, *held}):
            grant = LeaseGrant(granted=granted.get(phase, {}), held=held.get(phase, {}))
            self.outbox.put(phase, "leased", grant)
        self.changed()
