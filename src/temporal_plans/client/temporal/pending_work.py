"""The work that workflows have given to workers, as Temporal knows it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from temporalio.api.enums.v1 import (
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
)
from temporalio.client import Client

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.failure_text import failure_text
from temporal_plans.activities.mechanics.runs import beginning_of, described
from temporal_plans.client.temporal.workflow_tasks import last_task_end
from temporal_plans.domain.plans.explain import PendingWork
from temporal_plans.domain.values.text import shortened

_CHILD_LIMIT = 20
"""Child workflows of one workflow that are examined."""

_FAILURE_SIZE = 300
"""Characters of a failure that are kept."""

_STARTED_STATES = frozenset(
    {
        PendingActivityState.PENDING_ACTIVITY_STATE_STARTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED,
        PendingActivityState.PENDING_ACTIVITY_STATE_PAUSE_REQUESTED,
    }
)

_Queue = tuple[str, TaskQueueType.ValueType]


async def pending_work(
    client: Client, workflow_ids: Sequence[str]
) -> Mapping[str, Sequence[PendingWork]]:
    """Return the pending activities and child workflows of each open workflow, by workflow id.
    Raises RPCError."""
    answers = await gather_bounded(open_workflow(client, id) for id in workflow_ids)
    found = {
        id: [
            *[await _activity(client, pending) for pending in answer.pending_activities],
            *await _children(client, answer),
        ]
        for id, answer in zip(workflow_ids, answers, strict=True)
        if answer is not None
    }
    waiting = {_queue(work) for group in found.values() for work in group if _waits(work)}
    queues = sorted(waiting)
    polls = await gather_bounded(_last_poll(client, *queue) for queue in queues)
    polled = dict(zip(queues, polls, strict=True))
    return {
        id: [work.but(last_poll=polled[_queue(work)]) if _waits(work) else work for work in group]
        for id, group in found.items()
    }


async def open_workflow(
    client: Client, workflow_id: str
) -> DescribeWorkflowExecutionResponse | None:
    """Return the description of a workflow; None when it is not open. Raises RPCError."""
    found = await described(client, workflow_id)
    return None if found is None or found.close_time else found.raw_description


async def _activity(client: Client, pending: PendingActivityInfo) -> PendingWork:
    started = pending.state in _STARTED_STATES
    since = pending.last_started_time if started else pending.scheduled_time
    in_backoff = pending.HasField("next_attempt_schedule_time") and not started
    return PendingWork(
        type=pending.activity_type.name,
        task_queue=pending.activity_options.task_queue.name,
        since=since.ToDatetime(UTC),
        started=started,
        worker=pending.last_worker_identity if started else "",
        attempt=max(pending.attempt, 1),
        last_failure=await text_of(client, pending.last_failure),
        next_attempt=pending.next_attempt_schedule_time.ToDatetime(UTC) if in_backoff else None,
        paused=pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_PAUSED,
    )


async def _children(client: Client, parent: DescribeWorkflowExecutionResponse) -> list[PendingWork]:
    """Return the child workflows that exist: a parent lists a child a moment before it exists."""
    ids = [child.workflow_id for child in parent.pending_children[:_CHILD_LIMIT]]
    answers = await gather_bounded(open_workflow(client, id) for id in ids)
    return await gather_bounded(_child(client, answer) for answer in answers if answer is not None)


async def _child(client: Client, answer: DescribeWorkflowExecutionResponse) -> PendingWork:
    """Return a child workflow's state: a worker has it unless one of its workflow tasks waits.

    A child that failed gets a new run after its back-off; a workflow task that failed is retried at
    once.
    """
    info, task = answer.workflow_execution_info, answer.pending_workflow_task
    child = PendingWork(
        type=info.type.name,
        workflow_id=info.execution.workflow_id,
        task_queue=info.task_queue,
        since=info.start_time.ToDatetime(UTC),
        started=True,
    )
    next_attempt = info.execution_time.ToDatetime(UTC)
    if next_attempt > info.start_time.ToDatetime(UTC) and info.history_length == 1:
        return await _in_backoff(client, child.but(started=False, next_attempt=next_attempt))
    if task.attempt > 1:
        child = child.but(attempt=task.attempt)
        if failure := await _failure_of_a_task(client, child.workflow_id):
            return child.but(last_failure=failure)
    if task.state == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED:
        since = task.original_scheduled_time.ToDatetime(UTC)
        return child.but(started=False, since=since)
    return child


async def _in_backoff(client: Client, child: PendingWork) -> PendingWork:
    began = await beginning_of(client, child.workflow_id)
    if began is None:
        return child
    failure = await text_of(client, began.continued_failure)
    return child.but(attempt=max(began.attempt, 1), last_failure=failure)


async def _failure_of_a_task(client: Client, workflow_id: str) -> str:
    """Return the failure of the last workflow task; empty when that timed out with its worker."""
    event = await last_task_end(client, workflow_id)
    if event is None or not event.HasField("workflow_task_failed_event_attributes"):
        return ""
    return await text_of(client, event.workflow_task_failed_event_attributes.failure)


async def text_of(client: Client, failure: Failure) -> str:
    """Return the failure's message in one line; its type if it has no message."""
    if not failure.ByteSize():
        return ""
    error = await client.data_converter.decode_failure(failure)
    text = " ".join(failure_text(error).split())
    return shortened(text or getattr(error, "type", "") or type(error).__name__, _FAILURE_SIZE)


def _waits(work: PendingWork) -> bool:
    """Return whether the work waits on a known task queue. Servers before 1.28 don't report the
    queue of an activity."""
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
