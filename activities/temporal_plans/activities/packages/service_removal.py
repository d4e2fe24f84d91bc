"""The activity that uninstalls the services of nested packages, before the objects of their
parent."""

from datetime import timedelta

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.open_runs import query_open
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import UninstallRequest
from temporal_plans.messages.packages import (
    InstanceStatus,
    Inventory,
    RemovalInput,
    TasksOutcome,
    TasksResult,
)

_RPC_TIMEOUT = timedelta(seconds=20)


class ServiceRemovalActivities:
    """``client`` reaches the Instances."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn
    async def remove_services(self, order: RemovalInput) -> TasksResult:
        """Uninstall the services that the Instance installed for packages nested in its own, the
        last one first. WAITING says which one is not gone; one that others installed stays.

        Never fails: what can't be asked now is RETRY.
        """
        try:
            async with heartbeats():
                inventory: Inventory = await self._client.get_workflow_handle(order.owner).query(
                    "inventory", result_type=Inventory, rpc_timeout=_RPC_TIMEOUT
                )
                for name in reversed(inventory.services):
                    if (left := await self._remove(name, order)) is not None:
                        return TasksResult(outcome=TasksOutcome.WAITING, reason=left)
        except (
            RPCError,
            WorkflowQueryFailedError,
            WorkflowUpdateFailedError,
            WorkflowUpdateRPCTimeoutOrCancelledError,
        ) as error:
            return TasksResult(outcome=TasksOutcome.RETRY, reason=f"Temporal: {error}"[:500])
        return TasksResult(outcome=TasksOutcome.DONE)

    async def _remove(self, name: str, order: RemovalInput) -> str | None:
        """Return why a service is still there; None when it is gone, or is no concern of this."""
        status = await self._status(name)
        if status is None or status.parent != order.package.service:
            return None
        if not status.uninstalling:
            by, reason = f"service {order.package.service}"[:200], "its parent is uninstalled"
            request = UninstallRequest(volumes=order.volumes, by=by, reason=reason)
            child = self._client.get_workflow_handle(service_id(name))
            await child.execute_update("uninstall", request, rpc_timeout=_RPC_TIMEOUT)
        cleanup = next((one for one in status.plans if one.name == CLEANUP), None)
        if cleanup is not None and cleanup.status is Status.ERROR:
            see = f"see `temporal plan explain {CLEANUP} -s {name}`"
            return f"service {name} is being uninstalled, and its plan {CLEANUP} failed: {see}"
        return f"service {name} is being uninstalled"

    async def _status(self, name: str) -> InstanceStatus | None:
        """Return the status of a package's service; None when there is none of this name."""
        handle = self._client.get_workflow_handle(service_id(name))
        try:
            return await query_open(handle, "status", InstanceStatus, timeout=_RPC_TIMEOUT)
        except WorkflowQueryRejectedError:
            return None
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise
