"""What Temporal says of the work that a workflow has given to workers."""

from datetime import UTC, datetime

from temporalio.api.enums.v1 import PendingActivityState, PendingWorkflowTaskState, TaskQueueType
from temporalio.api.failure.v1 import Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionResponse,
)
from temporalio.client import Client

from temporal_plans.domain.explain import GivenWork

_TURNS = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
_ACTIVITIES = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY

_LONGEST = 300
"""Characters of a failure."""


async def given_work(client: Client, workflow_id: str) -> list[GivenWork]:
    """Activities and child workflows of the newest run that are not over. Raises RPCError."""
    described = await _described(client, workflow_id)
    found = [_activity(pending) for pending in described.pending_activities]
    for child in described.pending_children:
        found.append(_child(await _described(client, child.workflow_id)))
    return [work if work.taken else await _with_asked(client, work) for work in found]


async def _described(client: Client, workflow_id: str) -> DescribeWorkflowExecutionResponse:
    return (await client.get_workflow_handle(workflow_id).describe()).raw_description


def _activity(pending: PendingActivityInfo) -> GivenWork:
    taken = pending.state in (
        PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
    )
    since = pending.last_started_time if taken else pending.scheduled_time
    later = pending.HasField("next_attempt_schedule_time") and not taken
    return GivenWork(
        type=pending.activity_type.name,
        queue=pending.activity_options.task_queue.name,
        since=since.ToDatetime(UTC),
        taken=taken,
        worker=pending.last_worker_identity if taken else "",
        attempt=max(pending.attempt, 1),
        failure=_innermost(pending.last_failure),
        again=pending.next_attempt_schedule_time.ToDatetime(UTC) if later else None,
        paused=pending.paused,
    )


def _child(described: DescribeWorkflowExecutionResponse) -> GivenWork:
    """A worker has taken it when no turn of it waits for one."""
    info, turn = described.workflow_execution_info, described.pending_workflow_task
    taken = turn.state != PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
    since = info.start_time if taken else turn.original_scheduled_time
    return GivenWork(
        type=info.type.name,
        id=info.execution.workflow_id,
        queue=info.task_queue,
        since=since.ToDatetime(UTC),
        taken=taken,
        attempt=max(turn.attempt, 1),
    )


async def _with_asked(client: Client, work: GivenWork) -> GivenWork:
    if not work.queue:  # a server that does not say
        return work.but(asked=datetime.now(UTC))
    queue = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=work.queue),
            task_queue_type=_TURNS if work.id else _ACTIVITIES,
        )
    )
    asked = [poller.last_access_time.ToDatetime(UTC) for poller in queue.pollers]
    return work.but(asked=max(asked, default=None))


def _innermost(failure: Failure) -> str:
    """What the failure says that caused it, which was written for people."""
    while failure.HasField("cause"):
        failure = failure.cause
    return failure.message[:_LONGEST]
