"""A step that runs a command once, on an agent, with its own reservation."""

import asyncio
from datetime import timedelta
from typing import NamedTuple

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from temporal_plans.activities.mechanics.failure_text import typed_failure_text
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.kinds.command import CommandWork
from temporal_plans.domain.plans import transitions
from temporal_plans.domain.services.command_pod import command_pod
from temporal_plans.domain.services.requirements import requirement_for
from temporal_plans.domain.services.spec import PodSpec
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import task_id
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.pools import ReleaseInput, ReserveInput, ReserveResult
from temporal_plans.messages.tasks import LaunchInput
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.kinds.pod import OFFER_TIMEOUT, QUICK_RETRY, refusal_text

_NO_TIMEOUT = timedelta(days=3650)


async def run(step: StepAttempt) -> None:
    """Reserve, run the command to its end, release. A failed command is retried after the back-off,
    up to ``retries`` times; a lost agent counts as a failure.

    The step's ``result`` is the id of the newest task, which identifies its output. The sandbox of
    a command that ended by itself is kept until its agent removes it; others are destroyed.
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
        _retry_or_fail(step, work, end.failure)
    else:
        step.set(transitions.completed(step.state, workflow.now(), step.state.result))


class _End(NamedTuple):
    """The end of an attempt. ``failure`` is empty on success; ``reservation`` is the id of the
    reservation, empty when unknown. ``by_itself``: the command ended, rather than was stopped."""

    failure: str
    reservation: str = ""
    by_itself: bool = False


async def _attempt(
    step: StepAttempt, work: CommandWork, pod: PodSpec, requirement: Requirement
) -> _End:
    held = ""
    try:
        reservation = await _reserve(step, requirement, work.pool)
        held = reservation.id
        step.begin()
        status = await _run(step, work, pod, reservation)
    except Exception as error:
        if is_cancelled_exception(error):
            raise asyncio.CancelledError from error
        return _End(typed_failure_text(error), held)
    return _End(
        "" if status.state is TaskState.FINISHED else _failure_text(status), held, by_itself=True
    )


async def _reserve(step: StepAttempt, requirement: Requirement, pool: str) -> Reservation:
    while True:
        step.clear_offer()
        answer: ReserveResult = await workflow.execute_activity(
            "reserve",
            ReserveInput(pool=pool, requirement=requirement),
            result_type=ReserveResult,
            start_to_close_timeout=timedelta(seconds=30),
            heartbeat_timeout=HEARTBEAT_TIMEOUT,
            retry_policy=QUICK_RETRY,
            summary=f"reserve for {step.name}",
        )
        if answer.reservation is not None:
            return answer.reservation
        step.set(transitions.prepared(step.state, refusal_text(answer.refusals)))
        await step.wait_until(lambda: step.offered, within=OFFER_TIMEOUT)


async def _run(
    step: StepAttempt, work: CommandWork, pod: PodSpec, reservation: Reservation
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
        task_queue=reservation.queue,
        start_to_close_timeout=work.timeout or _NO_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=QUICK_RETRY,
        summary=f"{step.place.element} on {reservation.agent}",
    )
    try:
        await workflow.wait_condition(lambda: running.done() or step.agent_lost(reservation))
    finally:
        if not running.done():
            running.cancel()
    if not running.done():
        lost = Refusal.of(Code.AGENT_LOST, f"agent {reservation.agent} was lost")
        raise refusal_error(lost, type="AgentLost", non_retryable=False)
    status: TaskStatus = await running
    return status


async def _release(key: str, pool: str, *, destroy: bool = True, reservation: str = "") -> None:
    await workflow.execute_activity(
        "release",
        ReleaseInput(pool=pool, key=key, reservation=reservation, destroy=destroy),
        start_to_close_timeout=timedelta(minutes=5),
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=QUICK_RETRY,
        summary="release",
    )


def _retry_or_fail(step: StepAttempt, work: CommandWork, reason: str) -> None:
    if work.retries is not None and step.attempt > work.retries:
        step.set(transitions.failed(step.state, reason))
    else:
        step.set(transitions.delayed(step.state, reason, step.place.backoff, workflow.now()))


def _failure_text(status: TaskStatus) -> str:
    code = "" if status.exit_code is None else f"exit code {status.exit_code}"
    ended = f"the command ended {status.state}" + (f" with {code}" if code else "")
    return ended if status.message in ("", code) else f"{ended}. {status.message}"
