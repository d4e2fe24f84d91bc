"""Starting children under ids that are used again."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from temporalio.exceptions import WorkflowAlreadyStartedError

from temporal_plans.workflows.handlers import wait_or_timeout

Handle = TypeVar("Handle")

_AGAIN_AFTER = tuple(timedelta(seconds=seconds) for seconds in (0.2, 0.5, 1, 2, 4, 8, 15, 30))


async def started_when_free(
    start: Callable[[], Awaitable[Handle]], called_off: Callable[[], bool]
) -> Handle | None:
    """The child, once the one before it has ended: that of a plan which was terminated, and then
    begun anew, is asked to cancel what it does, and takes its time.

    None when it is called off while it waits. Raises WorkflowAlreadyStartedError when it would wait
    for more than a minute; what was to be worked on then reads ERROR.
    """
    for pause in _AGAIN_AFTER:
        try:
            return await start()
        except WorkflowAlreadyStartedError:
            if await wait_or_timeout(called_off, pause):
                return None
    return await start()
