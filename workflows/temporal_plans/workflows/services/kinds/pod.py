"""A step that launches tasks of one pod instance (behaviour 3.7, design 4 and 6).

The step reserves resources first; only then does it kill the tasks in the way (design 8), and the
agent starts the new tasks. From there the step follows their statuses.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.domain.cluster.refusals import in_short
from temporal_plans.domain.cluster.reservations import reservation_key
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans import transitions
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import TaskProgress
from temporal_plans.domain.services.unreported import REPORT_TIMEOUT, UNREPORTED
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.messages.addresses import pool_id, service_id
from temporal_plans.messages.pools import Withdrawal
from temporal_plans.messages.services import (
    PreparedTask,
    PreparePodInput,
    PreparePodResult,
    SubscribeMessage,
)
from temporal_plans.messages.tasks import KillInput, LaunchInput, TaskStatuses
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.pod_owner import PodOwner, owner_of

QUICK_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5)
)
OFFER_TIMEOUT = timedelta(minutes=5)
"""How long a step waits for an offer before it asks the pool again: another caller may have
released the pod's reservation, and with it the waiting requirements."""

IN_USE_TIMEOUT = timedelta(seconds=10)
"""The same while tasks of the pod use its resources, doubled each time: when one of them ends, its
resources are free for this pod only, and the pool sends no offer."""

LAUNCH_PICKUP_TIMEOUT = timedelta(minutes=10)
"""How long a launch waits until its agent picks it up. An absent agent is lost long before, and the
step gets a report."""

KILL_PICKUP_TIMEOUT = timedelta(seconds=20)
"""How long a pod that moves waits until its former agent picks up the kill of its old tasks."""


_UNDER_WAY = (Status.STARTING, Status.STARTED)
"""A step with tasks in another status must launch them again: they have failed, or are gone."""


async def run(step: StepAttempt) -> None:
    """Launch the tasks, or resume an earlier run's launch; then follow the tasks."""
    work, owner = step.work, owner_of(step)
    assert isinstance(work, PodWork)
    if step.state.tasks and step.state.status in _UNDER_WAY:
        step.committed = True
        await _subscribe(step, owner)
        await _wait_for_first_reports(step)
    else:
        await _launch(step, work, owner, await _prepare(step, work, owner))
    await step.wait_until(lambda: step.state.status not in _UNDER_WAY)


async def _prepare(step: StepAttempt, work: PodWork, owner: PodOwner) -> PreparePodResult:
    """Reserve resources for the pod; while none fit, the step is PREPARED with the reasons."""
    attempt = str(workflow.uuid4())
    request = PreparePodInput(
        context=owner.context,
        pods=owner.pods,
        step=step.place.address,
        element=step.place.element,
        pod=work.pod,
        index=work.index,
        tasks=work.tasks,
        attempt=attempt,
        config_id=work.config_id,
        asked=workflow.now(),
    )
    in_use_timeout = IN_USE_TIMEOUT
    try:
        while True:
            step.clear_offer()
            # The launch may be recorded, and tasks in the way killed, before the answer arrives.
            step.committed = True
            answer: PreparePodResult = await workflow.execute_activity(
                "prepare_pod",
                request,
                result_type=PreparePodResult,
                start_to_close_timeout=timedelta(seconds=30),
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                retry_policy=QUICK_RETRY,
                summary=f"reserve for {step.name}",
            )
            if answer.reservation is not None:
                return answer
            step.committed = False
            step.set(transitions.prepared(step.state, refusal_text(answer.refusals)))
            await step.wait_until(
                lambda: step.offered, within=in_use_timeout if answer.in_use else OFFER_TIMEOUT
            )
            in_use_timeout = (
                min(2 * in_use_timeout, OFFER_TIMEOUT) if answer.in_use else IN_USE_TIMEOUT
            )
    except asyncio.CancelledError:
        # Withdraw the requirement: a later offer would reserve resources that no step uses. A later
        # run of the step asks again.
        await _withdraw(step, work, owner)
        raise


async def _withdraw(step: StepAttempt, work: PodWork, owner: PodOwner) -> None:
    key = reservation_key(service_id(owner.name), work.pod, work.index)
    pool = workflow.get_external_workflow_handle(pool_id(owner.pods.pool))
    await pool.signal("withdraw", Withdrawal(key=key, notify=step.place.address))


async def _launch(
    step: StepAttempt, work: PodWork, owner: PodOwner, prepared: PreparePodResult
) -> None:
    reservation = prepared.reservation
    assert reservation is not None
    step.launched(_progress(work, prepared.tasks))
    if prepared.kill:
        step.say(f"waits for tasks to end: {', '.join(task.task_id for task in prepared.kill)}")
    launch = asyncio.create_task(
        _replace(
            prepared.kill,
            LaunchInput(
                service=owner.name,
                report_to=service_id(owner.name),
                config_id=prepared.config_id,
                pod=work.pod,
                index=work.index,
                reservation=reservation,
                tasks=tuple(
                    TaskLaunch(task_id=t.task_id, task=t.task, paused=t.paused)
                    for t in prepared.tasks
                ),
                parameters=step.arguments,
                step=step.place.element,
            ),
            step.name,
        )
    )
    try:
        # A report that the tasks are gone (their agent is lost) ends the wait for the launch.
        await workflow.wait_condition(lambda: launch.done() or step.state.status not in _UNDER_WAY)
    finally:
        if not launch.done():
            launch.cancel()
    if launch.done() and not launch.cancelled():
        _follow(step, launch.result())


def _follow(step: StepAttempt, outcome: "TaskStatuses | Exception") -> None:
    if isinstance(outcome, Exception):
        backoff, now = step.place.backoff, workflow.now()
        step.set(transitions.delayed(step.state, typed_failure_text(outcome), backoff, now))
        return
    for status in outcome.statuses:
        step.set(transitions.reported(step.state, status, step.place.backoff, workflow.now()))


async def _replace(
    tasks_in_the_way: Iterable[TaskRef], launch: LaunchInput, name: str
) -> "TaskStatuses | Exception":
    """Kill the tasks in the way, and launch; return the statuses, or the failure."""
    try:
        await _kill(tasks_in_the_way, name, launch.reservation.queue)
        statuses: TaskStatuses = await workflow.execute_activity(
            "launch",
            launch,
            result_type=TaskStatuses,
            task_queue=launch.reservation.queue,
            schedule_to_start_timeout=LAUNCH_PICKUP_TIMEOUT,
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=QUICK_RETRY,
            summary=f"launch {name} on {launch.reservation.agent}",
        )
        return statuses
    except Exception as error:
        return error


async def _kill(tasks_in_the_way: Iterable[TaskRef], name: str, target_queue: str) -> None:
    """Kill the tasks in the way, on all agents at once; return when they are dead.

    A pod that moves does not wait for an agent that does not answer: its tasks there are destroyed
    with their reservation when the agent is back. ``target_queue`` is the task queue of the pod's
    new agent. A task without a task queue can't be killed, and is not waited for.
    """
    by_queue: dict[str, list[str]] = defaultdict(list)
    for place in tasks_in_the_way:
        if place.queue:
            by_queue[place.queue].append(place.task_id)
        else:
            text = "task %s on agent %s is not killed for %s: its task queue is unknown"
            workflow.logger.warning(text, place.task_id, place.agent, name)
    await asyncio.gather(
        *(_kill_on(queue, ids, name, target_queue) for queue, ids in by_queue.items())
    )


async def _kill_on(queue: str, ids: list[str], name: str, target_queue: str) -> None:
    try:
        await workflow.execute_activity(
            "kill",
            KillInput(task_ids=tuple(ids), reason=f"replaced by {name}"),
            result_type=TaskStatuses,
            task_queue=queue,
            schedule_to_start_timeout=None if queue == target_queue else KILL_PICKUP_TIMEOUT,
            start_to_close_timeout=timedelta(hours=2),
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=QUICK_RETRY,
            summary=f"kill tasks in the way of {name}",
        )
    except ActivityError as error:
        if queue == target_queue or not isinstance(error.cause, ActivityTimeoutError):
            raise
        workflow.logger.warning(
            "%s does not wait for the kill on task queue %s: %s", name, queue, error.cause
        )


async def _subscribe(step: StepAttempt, owner: PodOwner) -> None:
    service = workflow.get_external_workflow_handle(owner.workflow_id)
    await service.signal(
        "subscribe",
        SubscribeMessage(owner=step.place.address, task_ids=tuple(step.state.tasks)),
    )


async def _wait_for_first_reports(step: StepAttempt) -> None:
    """Wait for each task's first report; one cancelled after its record has none: GONE."""

    def all_reported() -> bool:
        tasks = step.state.tasks.values()
        return step.state.status not in _UNDER_WAY or all(task.sequence >= 0 for task in tasks)

    if await step.wait_until(all_reported, within=REPORT_TIMEOUT):
        return
    for task_id, task in step.state.tasks.items():
        if task.sequence < 0:
            gone = TaskStatus(
                task_id=task_id,
                name=task.name,
                state=TaskState.GONE,
                sequence=0,
                at=workflow.now(),
                message=UNREPORTED,
            )
            step.set(transitions.reported(step.state, gone, step.place.backoff, workflow.now()))


def _progress(work: PodWork, tasks: Iterable[PreparedTask]) -> dict[str, TaskProgress]:
    return {
        task.task_id: TaskProgress(
            name=task_instance_name(work.pod, work.index, task.task),
            goal=Goal(task.goal),
            check=task.readiness_check,
        )
        for task in tasks
    }


def refusal_text(refusals: Iterable[Refusal]) -> str:
    """Return why no agent fits, in one line."""
    texts = [in_short(refusal) for refusal in refusals]
    return "no agent fits: " + " | ".join(texts) if texts else "no agent has registered"
