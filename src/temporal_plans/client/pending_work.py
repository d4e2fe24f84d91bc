"""What Temporal says of the work that workflows have given to workers and wait for."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import (
    EventType,
    PendingActivityState,
    PendingWorkflowTaskState,
    TaskQueueType,
)
from temporalio.api.failure.v1 import Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflow.v1 import PendingActivityInfo
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    DescribeWorkflowExecutionResponse,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import Client

from temporal_plans.activities.runs import beginning_of, described
from temporal_plans.client.failure_text import failure_text
from temporal_plans.client.together import together
from temporal_plans.domain.explain import PendingWork
from temporal_plans.domain.transitions import shortened

_CHILDREN = 20
"""Child workflows of one workflow that are looked at."""

_LONGEST = 300
"""Characters of a failure."""

_HAS_IT = frozenset(
    {
        PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
    }
)

_NO_FAILURE = (
    EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED,
    EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT,
)

_Queue = tuple[str, TaskQueueType.ValueType]


async def pending_work(
    client: Client, workflow_ids: Sequence[str]
) -> Mapping[str, Sequence[PendingWork]]:
    """Activities and child workflows that are not over, of the workflows of which one is open.
    Raises RPCError."""
    answers = await together(_open(client, id) for id in workflow_ids)
    found = {
        id: [
            *[await _activity(client, one) for one in answer.pending_activities],
            *await _children(client, answer),
        ]
        for id, answer in zip(workflow_ids, answers, strict=True)
        if answer is not None
    }
    waiting = {_queue(work) for group in found.values() for work in group if _waits(work)}
    queues = sorted(waiting)
    polls = await together(_last_poll(client, *queue) for queue in queues)
    polled = dict(zip(queues, polls, strict=True))
    return {
        id: [work.but(last_poll=polled[_queue(work)]) if _waits(work) else work for work in group]
        for id, group in found.items()
    }


async def _open(client: Client, workflow_id: str) -> DescribeWorkflowExecutionResponse | None:
    found = await described(client, workflow_id)
    return None if found is None or found.close_time else found.raw_description


async def _activity(client: Client, pending: PendingActivityInfo) -> PendingWork:
    started = pending.state in _HAS_IT
    since = pending.last_started_time if started else pending.scheduled_time
    later = pending.HasField("next_attempt_schedule_time") and not started
    return PendingWork(
        type=pending.activity_type.name,
        task_queue=pending.activity_options.task_queue.name,
        since=since.ToDatetime(UTC),
        started=started,
        worker=pending.last_worker_identity if started else "",
        attempt=max(pending.attempt, 1),
        last_failure=await _text(client, pending.last_failure),
        next_attempt=pending.next_attempt_schedule_time.ToDatetime(UTC) if later else None,
        paused=pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED,
    )


async def _children(client: Client, parent: DescribeWorkflowExecutionResponse) -> list[PendingWork]:
    """Without those that are yet to be made: a parent has them a moment before they are there."""
    ids = [child.workflow_id for child in parent.pending_children[:_CHILDREN]]
    answers = await together(_open(client, id) for id in ids)
    return await together(_child(client, answer) for answer in answers if answer is not None)


async def _child(client: Client, answer: DescribeWorkflowExecutionResponse) -> PendingWork:
    """A worker has it when no workflow task of it waits for one. One that failed is begun again
    later, one of which a workflow task fails is tried at once."""
    info, task = answer.workflow_execution_info, answer.pending_workflow_task
    child = PendingWork(
        type=info.type.name,
        workflow_id=info.execution.workflow_id,
        task_queue=info.task_queue,
        since=info.start_time.ToDatetime(UTC),
        started=True,
    )
    begins = info.execution_time.ToDatetime(UTC)
    if begins > info.start_time.ToDatetime(UTC) and info.history_length == 1:
        return await _begun_again(client, child.but(started=False, next_attempt=begins))
    if task.attempt > 1:
        child = child.but(attempt=task.attempt)
        if failure := await _failure_of_a_task(client, child.workflow_id):
            return child.but(last_failure=failure)
    if task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED:
        since = task.original_scheduled_time.ToDatetime(UTC)
        return child.but(started=False, since=since)
    return child


async def _begun_again(client: Client, child: PendingWork) -> PendingWork:
    began = await beginning_of(client, child.workflow_id)
    if began is None:
        return child
    failure = await _text(client, began.continued_failure)
    return child.but(attempt=max(began.attempt, 1), last_failure=failure)


async def _failure_of_a_task(client: Client, workflow_id: str) -> str:
    """Nothing when the last one ended otherwise: it timed out with its worker."""
    answer = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=WorkflowExecution(workflow_id=workflow_id),
            maximum_page_size=10,
        )
    )
    for event in answer.history.events:
        if event.HasField("workflow_task_failed_event_attributes"):
            return await _text(client, event.workflow_task_failed_event_attributes.failure)
        if event.event_type in _NO_FAILURE:
            break
    return ""


async def _text(client: Client, failure: Failure) -> str:
    """In one line. Of a failure without a message, its type."""
    if not failure.ByteSize():
        return ""
    error = await client.data_converter.decode_failure(failure)
    text = " ".join(failure_text(error).split())
    return shortened(text or getattr(error, "type", "") or type(error).__name__, _LONGEST)


def _waits(work: PendingWork) -> bool:
    """Servers before 1.28 don't name the queue of an activity."""
    return not work.started and bool(work.task_queue)


def _queue(work: PendingWork) -> _Queue:
    workflows = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
    activities = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
    return work.task_queue, workflows if work.workflow_id else activities


async def _last_poll(client: Client, name: str, kind: TaskQueueType.ValueType) -> datetime | None:
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=name), task_queue_type=kind
        )
    )
    polls = [poller.last_access_time.ToDatetime(UTC) for poller in answer.pollers]
    return max(polls, default=None)
