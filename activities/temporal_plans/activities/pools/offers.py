"""Activities for reservations: ``reserve``, ``release``, and the Pool's own ``check_owners``."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.update_failures import non_retryable
from temporal_plans.activities.pools.backend import Placement
from temporal_plans.activities.pools.pool_placement import Backoff
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.messages.pools import (
    Holdings,
    OwnersInput,
    OwnersReport,
    ReleaseInput,
    ReleaseResult,
    ReserveInput,
    ReserveResult,
)

QUERY_TIMEOUT = timedelta(seconds=5)


async def release_and_wait(placement: Placement, request: ReleaseInput) -> ReleaseResult:
    """Release a reservation, and wait until its machine has destroyed it or is not alive (it then
    destroys when it is back; see ``agent`` and ``agent_state``). A key without reservation is no
    error.
    """
    first: ReleaseResult | None = None
    backoff = Backoff()
    while True:
        result = await placement.release(request)
        if first is None:
            first = result
            if result.reservation is not None:  # the key may have another by the next call
                request = request.but(reservation=result.reservation.id)
        if result.destroyed:
            return result.but(reservation=first.reservation)
        await backoff.wait()


@dataclass(frozen=True)
class OfferActivities:
    """The activities, for a worker on the queue ``plans``: ``reserve``, ``release`` and
    ``check_owners``. ``client`` is the worker's."""

    client: Client
    placement: Placement

    @activity.defn
    async def reserve(self, request: ReserveInput) -> ReserveResult:
        """Reserve for one pod instance. A result without reservation: the requirement waits."""
        try:
            async with heartbeats():
                return await self.placement.reserve(request)
        except RefusedError as error:
            raise non_retryable(error, str(error)) from error

    @activity.defn
    async def release(self, request: ReleaseInput) -> None:
        """Release a reservation, and a waiting requirement of the same key."""
        async with heartbeats():
            await release_and_wait(self.placement, request)

    @activity.defn
    async def check_owners(self, request: OwnersInput) -> OwnersReport:
        """Report which workflows have ended, and which reservations running Services hold."""
        async with heartbeats():
            return await self._owners_report(request.workflows)

    async def _owners_report(self, workflows: Sequence[str]) -> OwnersReport:
        answers = await gather_bounded(map(self._is_running, workflows))
        running = dict(zip(workflows, answers, strict=True))
        # After that: the holdings then contain what a step reported to its Service before its end.
        services = [id for id in workflows if running[id] and id.startswith("service/")]
        holdings = zip(services, await gather_bounded(map(self._holdings, services)), strict=True)
        return OwnersReport(
            gone=tuple(id for id in workflows if running[id] is False),
            holdings={service: held for service, held in holdings if held is not None},
        )

    async def _is_running(self, workflow_id: str) -> bool | None:
        """Whether a workflow runs; None when the server did not answer."""
        try:
            described = await self.client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            return False if error.status is RPCStatusCode.NOT_FOUND else None
        return described.status in (
            WorkflowExecutionStatus.RUNNING,
            WorkflowExecutionStatus.CONTINUED_AS_NEW,
        )

    async def _holdings(self, service: str) -> Holdings | None:
        """Return a Service's holdings; None when it did not answer, so that it keeps all."""
        try:
            held: Holdings = await self.client.get_workflow_handle(service).query(
                "holdings", result_type=Holdings, rpc_timeout=QUERY_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            activity.logger.info("%s did not report its holdings: %s", service, error)
            return None
        return held
