"""Starting children under ids that are used again."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError

Handle = TypeVar("Handle")

_AGAIN_AFTER = tuple(timedelta(seconds=seconds) for seconds in (0.2, 0.5, 1, 2, 4, 8, 15, 30))


async def started_when_free(start: Callable[[], Awaitable[Handle]]) -> Handle:
    """The child, once the one before it has ended: that of a plan which was terminated, and then
    begun anew, is asked to cancel what it does, and takes its time. Raises
    WorkflowAlreadyStartedError when it takes more than a minute."""
    for pause in _AGAIN_AFTER:
        try:
            return await start()
        except WorkflowAlreadyStartedError:
            await workflow.sleep(pause, summary="until the id of a child is free")
    return await start()
