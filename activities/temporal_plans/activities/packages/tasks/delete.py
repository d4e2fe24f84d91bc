"""The task kind ``Delete``."""

from collections.abc import Sequence

from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.tasks.execution import TaskExecution, TaskState
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.tasks.delete import DeleteTask


async def delete(task: DeleteTask, context: StepContext) -> TaskExecution:
    """Delete the objects of its templates; it is done when all are gone."""
    return await deletion(task.resources, context)


async def deletion(keys: Sequence[str], context: StepContext) -> TaskExecution:
    """Return the execution that deletes the objects of templates. What is of a kind that the
    cluster does not have is deleted already."""
    left = await context.rendered(keys, known_only=True)
    await context.objects.claim(left)
    refs = tuple(ObjectRef.of(one) for one in left)

    async def begin() -> None:
        await context.objects.delete(left)

    async def look() -> TaskState:
        while left:
            if await context.cluster.get(left[0]) is not None:
                ref = ObjectRef.of(left[0])
                return TaskState(done=False, reason=f"{ref}: it is being deleted", about=ref)
            left.pop(0)
        return TaskState(done=True, gone=refs)

    return TaskExecution(begin=begin, look=look)
