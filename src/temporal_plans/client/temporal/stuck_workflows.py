"""Search for workflows whose workflow task fails, as Temporal knows them."""

from collections.abc import Iterable
from datetime import UTC

from temporalio.api.enums.v1 import WorkflowTaskFailedCause
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import DescribeWorkflowExecutionResponse
from temporalio.client import Client

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.temporal.pending_work import open_workflow, text_of
from temporal_plans.client.temporal.workflow_tasks import last_task_end
from temporal_plans.domain.plans.stuck import StuckWorkflow

_TIMEOUT_LIMIT = 3
"""The attempt at a task from which timeouts are reported: a worker that is restarted may time out
once."""

_PASSING = frozenset(
    {
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
        WorkflowTaskFailedCause.WORKFLOW_TASK_FAILED_CAUSE_RESET_STICKY_TASK_QUEUE,
    }
)
"""Causes that the next attempt does not meet: new events arrived, or the worker changed."""


async def stuck_workflows(
    client: Client, workflow_ids: Iterable[str], limit: int
) -> list[StuckWorkflow]:
    """Return those of the workflows, and of the child workflows below them, whose workflow task
    fails. At most ``limit`` workflows are examined. Raises RPCError."""
    found: list[StuckWorkflow] = []
    seen: set[str] = set()
    level = list(dict.fromkeys(workflow_ids))
    while level and len(seen) < limit:
        level = level[: limit - len(seen)]
        seen.update(level)
        answers = await gather_bounded(open_workflow(client, id) for id in level)
        described = [answer for answer in answers if answer is not None]
        stuck = await gather_bounded(_stuck(client, answer) for answer in described)
        found += [one for one in stuck if one is not None]
        children = (child.workflow_id for one in described for child in one.pending_children)
        level = [id for id in dict.fromkeys(children) if id not in seen]
    return found


async def _stuck(client: Client, answer: DescribeWorkflowExecutionResponse) -> StuckWorkflow | None:
    task, info = answer.pending_workflow_task, answer.workflow_execution_info
    if task.attempt <= 1:
        return None
    end = await last_task_end(client, info.execution.workflow_id)
    if end is None:
        return None
    stuck = StuckWorkflow(
        workflow_id=info.execution.workflow_id,
        type=info.type.name,
        parent=info.parent_execution.workflow_id,
        attempt=task.attempt,
        since=end.event_time.ToDatetime(UTC),
    )
    if end.HasField("workflow_task_failed_event_attributes"):
        return await _with_failure(client, stuck, end)
    timed_out = end.HasField("workflow_task_timed_out_event_attributes")
    if timed_out and task.attempt >= _TIMEOUT_LIMIT:
        return stuck.but(error="timeout", failure="it timed out")
    return None


async def _with_failure(
    client: Client, stuck: StuckWorkflow, end: HistoryEvent
) -> StuckWorkflow | None:
    failed = end.workflow_task_failed_event_attributes
    if failed.cause in _PASSING:
        return None
    cause = WorkflowTaskFailedCause.Name(failed.cause).removeprefix("WORKFLOW_TASK_FAILED_CAUSE_")
    unhandled = cause == "WORKFLOW_WORKER_UNHANDLED_FAILURE"
    error = failed.failure.application_failure_info.type if unhandled else cause
    return stuck.but(error=error, failure=await text_of(client, failed.failure))
