"""A step that runs a command once, on an agent, with resources of its own."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from temporalio import workflow
from temporalio.exceptions import ApplicationError, is_cancelled_exception

from temporal_plans.domain import transitions
from temporal_plans.domain.cluster import Requirement, Reservation
from temporal_plans.domain.plan import CommandWork, command_pod
from temporal_plans.domain.requirements import requirement_for
from temporal_plans.domain.service import PodSpec, task_id
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import (
    LaunchInput,
    ReleaseInput,
    ReserveInput,
    ReserveResult,
    TaskLaunch,
    agent_queue,
)
from temporal_plans.workflows.failures import failure_text
from temporal_plans.workflows.heartbeat import HEARTBEAT
from temporal_plans.workflows.kinds.pod import ASKS_AGAIN, QUICK_RETRY, refusal_text
from temporal_plans.workflows.step_context import StepContext

_FOR_EVER = timedelta(days=3650)


async def run_command(step: StepContext) -> None:
    """Reserve, run to the end, release. A failed command is tried again after the back-off, as
    often as ``retries`` says; an agent that is given up counts as a failure.

    The step's ``result`` is the id of the newest task, by which its output is found. What ended by
    itself keeps its sandbox, which its agent tidies away in time; all else is destroyed.
    """
    work = step.work
    assert isinstance(work, CommandWork)
    pod = command_pod(work, step.name.replace("/", "."))
    requirement = requirement_for(pod, 0, owner=step.place.address, notify=step.place.address)
    try:
        end = await _attempt(step, work, pod, requirement)
    except asyncio.CancelledError:
        if not step.leaving:
            await _release(requirement.key, work.pool)
        raise
    await _release(
        requirement.key, work.pool, destroy=not end.by_itself, reservation=end.reservation
    )
    if end.failure:
        _try_again(step, work, end.failure)
    else:
        step.set(transitions.completed(step.state, workflow.now(), step.state.result))


class _End(NamedTuple):
    """How an attempt ended; ``failure`` is empty when nothing went wrong. ``reservation`` is the id
    of what it held; empty if that is not known."""

    failure: str
    reservation: str = ""
    by_itself: bool = False


async def _attempt(
    step: StepContext, work: CommandWork, pod: PodSpec, requirement: Requirement
) -> _End:
    held = ""
    try:
        reservation = await _reserved(step, requirement, work.pool)
        held = reservation.id
        step.begin()
        status = await _run(step, work, pod, reservation)
    except Exception as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        return _End(failure_text(error), held)
    return _End("" if status.state is TaskState.FINISHED else _said(status), held, by_itself=True)


async def _reserved(step: StepContext, requirement: Requirement, pool: str) -> Reservation:
    while True:
        step.take_offer()
        answer: ReserveResult = await workflow.execute_activity(
            "reserve",
            ReserveInput(pool=pool, requirement=requirement),
            result_type=ReserveResult,
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=QUICK_RETRY,
            summary=f"reserve for {step.name}",
        )
        if answer.reservation is not None:
            return answer.reservation
        step.set(transitions.prepared(step.state, refusal_text(answer.refusals)))
        await step.until(lambda: step.offered, within=ASKS_AGAIN)


async def _run(
    step: StepContext, work: CommandWork, pod: PodSpec, reservation: Reservation
) -> TaskStatus:
    task = task_id("command", f"{pod.type}-0-command", str(workflow.uuid4()))
    step.set(step.state.but(reason=f"runs as {task} on agent {reservation.agent}", result=task))
    running = workflow.start_activity(
        "run_task",
        LaunchInput(
            service="",
            inline=pod,
            pod=pod.type,
            index=0,
            reservation=reservation,
            tasks=(TaskLaunch(task_id=task, task="command"),),
            parameters=step.arguments,
            step=step.place.element,
        ),
        result_type=TaskStatus,
        task_queue=agent_queue(reservation.agent),
        start_to_close_timeout=work.timeout or _FOR_EVER,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=QUICK_RETRY,
        summary=f"{step.place.element} on {reservation.agent}",
    )
    try:
        await workflow.wait_condition(lambda: running.done() or step.agent_lost(reservation))
    finally:
        if not running.done():
            running.cancel()
    if not running.done():
        raise ApplicationError(f"agent {reservation.agent} was lost", type="AgentLost")
    status: TaskStatus = await running
    return status


async def _release(key: str, pool: str, *, destroy: bool = True, reservation: str = "") -> None:
    await workflow.execute_activity(
        "release",
        ReleaseInput(pool=pool, key=key, reservation=reservation, destroy=destroy),
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=QUICK_RETRY,
        summary="release",
    )


def _try_again(step: StepContext, work: CommandWork, reason: str) -> None:
    if work.retries is not None and step.attempt > work.retries:
        step.set(transitions.failed(step.state, reason))
    else:
        step.set(transitions.delayed(step.state, reason, step.place.backoff, workflow.now()))


def _said(status: TaskStatus) -> str:
    code = "" if status.exit_code is None else f" with exit code {status.exit_code}"
    return f"the command ended {status.state}{code}. {status.message}".strip()
