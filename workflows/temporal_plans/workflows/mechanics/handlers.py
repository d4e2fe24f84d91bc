"""Functions that the message handlers of several workflows share."""

from collections.abc import Callable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

HISTORY_EVENTS_LIMIT = 4000
"""History events after which a workflow continues as new, unless the server suggests it earlier."""


def should_continue_as_new(limit: int = HISTORY_EVENTS_LIMIT) -> bool:
    """Whether this run's history is long enough to continue as new."""
    info = workflow.info()
    return info.is_continue_as_new_suggested() or info.get_current_history_length() >= limit


ID_SIZE_LIMIT = 1000
"""Bytes of a workflow id. The server refuses a command that names a longer one, or none, and with
it the whole workflow task, which is retried without limit."""


async def send_signal(workflow_id: str, signal: str, message: object) -> bool:
    """Signal another workflow. Return False when that workflow does not run, or no workflow can
    have the id: messages from outside name workflows."""
    if not 0 < len(workflow_id.encode(errors="replace")) <= ID_SIZE_LIMIT:
        return False
    try:
        await workflow.get_external_workflow_handle(workflow_id).signal(signal, message)
    except FailureError:
        return False
    return True


async def wait_or_timeout(condition: Callable[[], bool], timeout: timedelta | None) -> bool:
    """Wait for a condition. Return False when ``timeout`` passes first; None means no timeout."""
    try:
        await workflow.wait_condition(condition, timeout=timeout)
    except TimeoutError:
        return False
    return True
