"""The ends of workflow tasks in histories."""

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

_TASK_ENDS = (
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
)


async def last_task_end(client: Client, workflow_id: str) -> HistoryEvent | None:
    """Return the event with which the last workflow task ended; None when that is far back. Raises
    RPCError."""
    answer = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id),
            maximum_page_size=10,
        )
    )
    ends = (event for event in answer.history.events if event.event_type in _TASK_ENDS)
    return next(ends, None)
