"""The objects that an Instance has recorded, as its activities ask for them."""

from collections.abc import Sequence

from temporalio.client import Client, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.service import RPCError

from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.messages.packages import Inventory


async def recorded_objects(client: Client, owner: str) -> Sequence[ObjectRef]:
    """Return all objects of an Instance in the order in which they were first applied. Raises
    TaskProblem when it does not answer, which may pass."""
    handle = client.get_workflow_handle(owner)
    try:
        inventory: Inventory = await handle.query("inventory", result_type=Inventory)
    except (WorkflowQueryFailedError, WorkflowQueryRejectedError, RPCError) as error:
        problem = f"{owner} does not say which objects it has: {error}"
        raise TaskProblem(problem, passing=True) from error
    return inventory.objects
