"""The record that a step's owner keeps of what it is about to apply."""

import asyncio
from collections.abc import Sequence

from temporalio.client import (
    Client,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.update_failures import refusal_of, was_not_processed
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.messages.packages import OBJECTS_LIMIT, RecordObjects, TasksInput

_UPDATE = "record_objects"


async def record(
    client: Client,
    order: TasksInput,
    objects: Sequence[ObjectRef] = (),
    services: Sequence[str] = (),
    gone: Sequence[ObjectRef] = (),
) -> None:
    """Report to the owner of a step what it is about to apply, which services it is about to
    deploy, and which objects it has deleted. Raises TaskProblem when the plan's run is over, so
    that nothing is applied by it any more, and when the owner does not answer."""
    if len(objects) > OBJECTS_LIMIT:
        raise TaskProblem(f"{len(objects)} objects; an instance has at most {OBJECTS_LIMIT}")
    message = RecordObjects(
        plan=order.plan,
        uid=order.run.uid,
        objects=tuple(objects),
        services=tuple(services),
        gone=tuple(gone),
    )
    try:
        await client.get_workflow_handle(order.owner).execute_update(_UPDATE, message)
    except WorkflowUpdateFailedError as error:
        if was_not_processed(error.cause):
            raise TaskProblem(
                "its instance has not answered; it is asked again", passing=True
            ) from error
        raise TaskProblem(f"{order.owner} refuses: {refusal_of(error.cause)}") from error
    except WorkflowUpdateRPCTimeoutOrCancelledError as error:
        if isinstance(error.__cause__, asyncio.CancelledError):
            raise error.__cause__ from None  # the activity's own cancellation
        raise TaskProblem("its instance did not answer in time", passing=True) from error
    except RPCError as error:
        closed = error.status is RPCStatusCode.NOT_FOUND
        problem = f"{order.owner} is closed" if closed else f"Temporal: {error.message}"
        raise TaskProblem(problem, passing=not closed) from error
