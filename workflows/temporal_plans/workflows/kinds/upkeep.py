"""Steps that take a service away: kill, unreserve, erase, deregister (reference 7.2, 8.2).

What they do is asked for again without harm, so they may be forced, restarted, interrupted and left
at any moment. An agent that is gone never makes them wait in silence: their reason names it.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain import transitions
from temporal_plans.domain.plan import DeregisterWork, EraseWork, KillWork, UnreserveWork
from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import ServiceContext
from temporal_plans.messages.upkeep import (
    DeregisterInput,
    EraseInput,
    ReleaseReservationInput,
    RetireInput,
    UpkeepResult,
)
from temporal_plans.workflows.heartbeat import HEARTBEAT
from temporal_plans.workflows.kinds.pod import QUICK_RETRY
from temporal_plans.workflows.step_context import StepContext

LONGEST_ROUND = timedelta(hours=1, minutes=10)
"""Time limit of one activity: a bit more than it lasts by itself (``activities.upkeep.ROUND``)."""


async def run_kill(step: StepContext) -> None:
    """Until the task is dead, or lost with its agent. Reads IN_PROGRESS."""
    work, context = step.work, _context(step)
    assert isinstance(work, KillWork)
    _begin(step)
    request = RetireInput(
        service=context.workflow_id, pool=context.pool, task=work.task, task_id=work.task_id
    )
    await _rounds(step, "retire_task", request)


async def run_unreserve(step: StepContext) -> None:
    """Until the agent has destroyed what the pod held, all of it: the steps for the pod's other
    resources find that done. Reads PREPARED."""
    work, context = step.work, _context(step)
    assert isinstance(work, UnreserveWork)
    _release(step)
    request = ReleaseReservationInput(
        service=context.workflow_id,
        pool=context.pool,
        key=work.key,
        reservation=work.reservation,
    )
    await _rounds(step, "release_reservation", request)


async def run_erase(step: StepContext) -> None:
    """The service forgets the task."""
    work, context = step.work, _context(step)
    assert isinstance(work, EraseWork)
    _begin(step)
    await _execute(step, "erase_task", EraseInput(service=context.workflow_id, task=work.task))


async def run_deregister(step: StepContext) -> None:
    """What is left of the service in the pool is given up; the service ends with its plan."""
    work, context = step.work, _context(step)
    assert isinstance(work, DeregisterWork)
    _release(step)
    request = DeregisterInput(service=context.workflow_id, pool=context.pool)
    await _execute(step, "deregister", request)


def _context(step: StepContext) -> ServiceContext:
    if step.place.context is None:
        text = f"a step of kind {step.work.kind} takes something of a service away; it has none"
        raise ApplicationError(text, type="NoService")
    return step.place.context


def _begin(step: StepContext) -> None:
    if step.state.status is not Status.IN_PROGRESS:  # else it is taken up again
        step.set(transitions.working(step.state, workflow.now()))


def _release(step: StepContext) -> None:
    if step.state.status is not Status.PREPARED:
        step.set(transitions.releasing(step.state, workflow.now()))


async def _rounds(
    step: StepContext, activity: str, request: RetireInput | ReleaseReservationInput
) -> None:
    """Ask until it is done; what it waits for meanwhile is the step's reason."""
    known = step.state.reason
    while True:
        answer = await _execute(step, activity, request.but(known=known))
        if answer.done:
            return
        known = answer.waits
        step.say(known)


async def _execute(
    step: StepContext,
    activity: str,
    request: RetireInput | ReleaseReservationInput | EraseInput | DeregisterInput,
) -> UpkeepResult:
    running = workflow.start_activity(
        activity,
        request,
        result_type=UpkeepResult,
        start_to_close_timeout=LONGEST_ROUND,
        heartbeat_timeout=HEARTBEAT,
        retry_policy=QUICK_RETRY,
        summary=step.place.element,
    )
    try:
        await step.until(running.done)
    finally:
        if not running.done():
            running.cancel()
    result: UpkeepResult = await running
    return result
