"""A step that launches tasks of one pod instance (reference 3.7, DESIGN 4 and 6).

Resources are reserved first; what is in the way is killed only when they are (DESIGN 8); then the
agent starts the tasks. From there the step follows their statuses.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from temporal_plans.domain import transitions
from temporal_plans.domain.cluster import Refusal, reservation_key
from temporal_plans.domain.plan import PodWork
from temporal_plans.domain.service import Goal, task_instance_name
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.domain.transitions import TaskProgress
from temporal_plans.messages.cluster import (
    KillInput,
    LaunchInput,
    TaskLaunch,
    TaskRef,
    TaskStatuses,
    Withdrawal,
    agent_queue,
    pool_id,
    service_id,
)
from temporal_plans.messages.plan import (
    PreparedTask,
    PreparePodInput,
    PreparePodResult,
    ServiceContext,
)
from temporal_plans.messages.service import SubscribeMessage
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.heartbeat import HEARTBEAT
from temporal_plans.workflows.step_context import StepContext
from temporal_plans.workflows.unheard import HEARD_WITHIN, NEVER_HEARD

QUICK_RETRY = RetryPolicy(
    initial_interval=timedelta(milliseconds=200), maximum_interval=timedelta(seconds=5)
)
ASKS_AGAIN = timedelta(minutes=5)
"""How long a step that waits for an offer relies on hearing of one: somebody else may have released
the pod's place, and with it all that waited for it."""

ASKS_SOON = timedelta(seconds=10)
"""The same at first, then twice as long each time, beside tasks of the pod that run on: when one of
them ends, what it used is free for the pod, and for nobody else to hear of."""

TAKEN_WITHIN = timedelta(minutes=10)
"""How long a launch waits for its agent to take it. One that stays away is given up long before,
and the step is told; but not if that happened just before the launch was recorded."""

ANSWERS_WITHIN = timedelta(seconds=20)
"""How long a pod that moves waits for the agent that it leaves to kill it there."""


_UNDER_WAY = (Status.STARTING, Status.STARTED)
"""A step with tasks that reads otherwise has to launch them anew: they failed, or are gone."""


async def run_pod(step: StepContext) -> None:
    """Launch, or take up what an earlier run of the workflow launched; then follow the tasks."""
    work, context = step.work, step.place.context
    assert isinstance(work, PodWork)
    if context is None:
        step.set(transitions.failed(step.state, "a pod step needs a service; deploy it with one"))
        return
    if step.state.tasks and step.state.status in _UNDER_WAY:
        step.committed = True
        await _subscribe(step, context)
        await _heard_of(step)
    else:
        await _launch(step, work, context, await _prepared(step, work, context))
    await step.until(lambda: step.state.status not in _UNDER_WAY)


async def _prepared(step: StepContext, work: PodWork, context: ServiceContext) -> PreparePodResult:
    """Resources for the pod; while none fit, PREPARED with the reasons."""
    attempt = str(workflow.uuid4())
    request = PreparePodInput(
        context=context,
        step=step.place.address,
        element=step.place.element,
        pod=work.pod,
        index=work.index,
        tasks=work.tasks,
        attempt=attempt,
        config_id=work.config_id,
        asked=workflow.now(),
    )
    soon = ASKS_SOON
    try:
        while True:
            step.take_offer()
            # Its launch may be on record, and what is in the way be gone, before the answer comes.
            step.committed = True
            answer: PreparePodResult = await workflow.execute_activity(
                "prepare_pod",
                request,
                result_type=PreparePodResult,
                start_to_close_timeout=timedelta(seconds=30),
                heartbeat_timeout=HEARTBEAT,
                retry_policy=QUICK_RETRY,
                summary=f"reserve for {step.name}",
            )
            if answer.reservation is not None:
                return answer
            step.committed = False
            step.set(transitions.prepared(step.state, refusal_text(answer.refusals)))
            await step.until(lambda: step.offered, within=soon if answer.in_use else ASKS_AGAIN)
            soon = min(2 * soon, ASKS_AGAIN) if answer.in_use else ASKS_SOON
    except asyncio.CancelledError:
        # Who leaves does not wait any more: what it wanted could be given to what runs in its place
        # when nobody wants that. A later run of the step asks again.
        await _withdraw(step, work, context)
        raise


async def _withdraw(step: StepContext, work: PodWork, context: ServiceContext) -> None:
    key = reservation_key(service_id(context.service), work.pod, work.index)
    pool = workflow.get_external_workflow_handle(pool_id(context.pool))
    await pool.signal("withdraw", Withdrawal(key=key, notify=step.place.address))


async def _launch(
    step: StepContext, work: PodWork, context: ServiceContext, prepared: PreparePodResult
) -> None:
    reservation = prepared.reservation
    assert reservation is not None
    step.launched(_progress(work, prepared.tasks))
    if prepared.kill:
        step.say(
            f"makes room: {', '.join(place.task_id for place in prepared.kill)} must end first"
        )
    launch = asyncio.create_task(
        _replace(
            prepared.kill,
            LaunchInput(
                service=context.service,
                report_to=service_id(context.service),
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
        # A report that the tasks are gone (their agent was given up) ends the wait for the launch.
        await workflow.wait_condition(lambda: launch.done() or step.state.status not in _UNDER_WAY)
    finally:
        if not launch.done():
            launch.cancel()
    if launch.done() and not launch.cancelled():
        _follow(step, launch.result())


def _follow(step: StepContext, outcome: "TaskStatuses | Exception") -> None:
    if isinstance(outcome, Exception):
        backoff, now = step.place.backoff, workflow.now()
        step.set(transitions.delayed(step.state, failure_text(outcome), backoff, now))
        return
    for status in outcome.statuses:
        step.set(transitions.reported(step.state, status, step.place.backoff, workflow.now()))


async def _replace(
    places: Iterable[TaskRef], launch: LaunchInput, name: str
) -> "TaskStatuses | Exception":
    """Make room, and start the tasks there; how that went."""
    try:
        await _kill(places, name, launch.reservation.agent)
        statuses: TaskStatuses = await workflow.execute_activity(
            "launch",
            launch,
            result_type=TaskStatuses,
            task_queue=agent_queue(launch.reservation.agent),
            schedule_to_start_timeout=TAKEN_WITHIN,
            start_to_close_timeout=timedelta(hours=1),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=QUICK_RETRY,
            summary=f"launch {name} on {launch.reservation.agent}",
        )
        return statuses
    except Exception as error:
        return error


async def _kill(places: Iterable[TaskRef], name: str, here: str) -> None:
    """Kill what is in the way, on all agents at once; returns when it is dead.

    A pod that moves does not wait for an agent that does not answer: what ran there is destroyed
    with its reservation when the agent is back.
    """
    by_agent: dict[str, list[str]] = defaultdict(list)
    for place in places:
        by_agent[place.agent].append(place.task_id)
    await asyncio.gather(*(_kill_on(agent, ids, name, here) for agent, ids in by_agent.items()))


async def _kill_on(agent: str, ids: list[str], name: str, here: str) -> None:
    try:
        await workflow.execute_activity(
            "kill",
            KillInput(task_ids=tuple(ids), reason=f"replaced by {name}"),
            result_type=TaskStatuses,
            task_queue=agent_queue(agent),
            schedule_to_start_timeout=None if agent == here else ANSWERS_WITHIN,
            start_to_close_timeout=timedelta(hours=2),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=QUICK_RETRY,
            summary=f"make room for {name}",
        )
    except ActivityError as error:
        if agent == here or not isinstance(error.cause, ActivityTimeoutError):
            raise
        workflow.logger.warning("%s does not wait for agent %s: %s", name, agent, error.cause)


async def _subscribe(step: StepContext, context: ServiceContext) -> None:
    service = workflow.get_external_workflow_handle(context.workflow_id)
    await service.signal(
        "subscribe",
        SubscribeMessage(owner=step.place.address, task_ids=tuple(step.state.tasks)),
    )


async def _heard_of(step: StepContext) -> None:
    """A launch that was recorded and then called off, nobody ever reports: it is taken for gone."""

    def heard() -> bool:
        tasks = step.state.tasks.values()
        return step.state.status not in _UNDER_WAY or all(one.sequence >= 0 for one in tasks)

    if await step.until(heard, within=HEARD_WITHIN):
        return
    for task_id, task in step.state.tasks.items():
        if task.sequence < 0:
            gone = TaskStatus(
                task_id=task_id,
                name=task.name,
                state=TaskState.GONE,
                sequence=0,
                at=workflow.now(),
                message=NEVER_HEARD,
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
    """Why nothing fits, in one line."""
    texts = [str(refusal) for refusal in refusals]
    return "no agent fits: " + " | ".join(texts) if texts else "no agent has registered"
