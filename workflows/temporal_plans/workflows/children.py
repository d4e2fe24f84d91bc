"""Starting children under ids that are used again."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.types import MethodAsyncSingleParam
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from temporal_plans.workflows.handlers import wait_or_timeout

Child = TypeVar("Child")
Input = TypeVar("Input")
Result = TypeVar("Result")

_AGAIN_AFTER = tuple(timedelta(seconds=seconds) for seconds in (0.2, 0.5, 1, 2, 4, 8, 15, 30))


async def started_when_free(
    run: MethodAsyncSingleParam[Child, Input, Result],
    input: Input,
    *,
    id: str,
    summary: str,
    called_off: Callable[[], bool],
) -> workflow.ChildWorkflowHandle[Child, Result] | None:
    """The child, once the one before it has ended: that of a plan which was terminated, and then
    begun anew, is asked to cancel what it does, and takes its time.

    None when it is called off while it waits. Raises WorkflowAlreadyStartedError when it would wait
    for more than a minute; what was to be worked on then reads ERROR.
    """

    async def start() -> workflow.ChildWorkflowHandle[Child, Result]:
        return await workflow.start_child_workflow(
            run,
            input,
            id=id,
            cancellation_type=ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
            parent_close_policy=ParentClosePolicy.REQUEST_CANCEL,
            static_summary=summary[:190],
        )

    for pause in _AGAIN_AFTER:
        try:
            return await start()
        except WorkflowAlreadyStartedError:
            if await wait_or_timeout(called_off, pause):
                return None
    return await start()
