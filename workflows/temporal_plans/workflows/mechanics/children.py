"""Start of child workflows whose ids are reused."""

from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.types import MethodAsyncSingleParam
from temporalio.workflow import ChildWorkflowCancellationType, ParentClosePolicy

from temporal_plans.workflows.mechanics.handlers import wait_or_timeout

Child = TypeVar("Child")
Input = TypeVar("Input")
Result = TypeVar("Result")

_RETRY_INTERVALS = tuple(timedelta(seconds=seconds) for seconds in (0.2, 0.5, 1, 2, 4, 8, 15, 30))


async def start_when_id_free(
    run: MethodAsyncSingleParam[Child, Input, Result],
    input: Input,
    *,
    id: str,
    summary: str,
    cancelled: Callable[[], bool],
) -> workflow.ChildWorkflowHandle[Child, Result] | None:
    """Start a child workflow, once the former workflow of the same id has ended.

    When a plan was terminated and then started again, the former child is asked to cancel its work,
    which takes time. Return None when ``cancelled`` becomes true during the wait. Raises
    WorkflowAlreadyStartedError after about a minute; the element then reads ERROR.
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

    for interval in _RETRY_INTERVALS:
        try:
            return await start()
        except WorkflowAlreadyStartedError:
            if await wait_or_timeout(cancelled, interval):
                return None
    return await start()
