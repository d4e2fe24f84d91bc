"""What Temporal keeps of the runs of a workflow, asked for without a fuss about what is missing."""

from temporalio.api.history.v1 import WorkflowExecutionStartedEventAttributes
from temporalio.client import Client, WorkflowExecutionDescription
from temporalio.service import RPCError, RPCStatusCode


async def described(
    client: Client, workflow_id: str, run_id: str = ""
) -> WorkflowExecutionDescription | None:
    """A run, by default the newest; None when there is none. Raises RPCError."""
    try:
        return await client.get_workflow_handle(workflow_id, run_id=run_id or None).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise


async def beginning_of(
    client: Client, workflow_id: str, run_id: str = ""
) -> WorkflowExecutionStartedEventAttributes | None:
    """What a run, by default the newest, began with: its first event, and no page more. None for a
    history that is empty. Raises RPCError."""
    handle = client.get_workflow_handle(workflow_id, run_id=run_id or None)
    async for event in handle.fetch_history_events(page_size=1):
        if event.HasField("workflow_execution_started_event_attributes"):
            return event.workflow_execution_started_event_attributes
        break
    return None
