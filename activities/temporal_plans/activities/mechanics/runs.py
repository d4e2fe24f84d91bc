"""Queries about the runs of a workflow; a missing run is None, not an error."""

from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode


async def described(
    client: Client, workflow_id: str, run_id: str = ""
) -> WorkflowExecutionDescription | None:
    """Describe a run, by default the newest; None when there is none. Raises RPCError."""
    try:
        return await client.get_workflow_handle(workflow_id, run_id=run_id or None).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def beginning_of(
    client: Client, workflow_id: str, run_id: str = ""
) -> WorkflowExecutionStartedEventAttributes | None:
    """Return the start event of a run, by default the newest, from the first page of its history.
    None for an empty history. Raises RPCError."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id or None)
    async for event in handle.fetch_history_events(page_size=1):
        if event.HasField("workflow_execution_started_event_attributes"):
            return event.workflow_execution_started_event_attributes
        break
    return None
