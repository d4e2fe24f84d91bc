"""Small things that message handlers of several workflows share."""

from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

CONTINUE_AT_EVENTS = 4000
"""History events after which a workflow continues as new, if the server suggests none earlier."""


def should_continue_as_new(limit: int = CONTINUE_AT_EVENTS) -> bool:
    """Whether this run's history is long enough to begin a new one."""
    info = workflow.info()
    return info.is_continue_as_new_suggested() or info.get_current_history_length() >= limit


async def tell(workflow_id: str, signal: str, message: object) -> bool:
    """Signal another workflow; whether it was there to hear it."""
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(signal, message)
    except FailureError:
        return False
    return True


async def wait_or_timeout(condition: Callable[[], bool], timeout: timedelta | None) -> bool:
    """Whether the condition came true in time; without a timeout it always does."""
    try:
        await workflow.wait_condition(condition, timeout=timeout)
    except TimeoutError:
        return False
    return True


def leave_a_command() -> None:
    """Call when the end of a child changes what the next command is judged by.

    The runner of the worker (``worker.steady_runner``) does it for all that happens to workflows
    with updates; this is for plans that began before it did.
    """
    workflow.upsert_memo({"tasks": workflow.info().get_current_history_length()})
