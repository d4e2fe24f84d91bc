"""Steps that remove parts of a service: kill, unreserve, erase, deregister (behaviour 7.2, 8.2).

Their requests are idempotent, so the steps may be forced, restarted, interrupted and left at any
time. A step that waits for an agent that is gone names that agent in its reason.
"""

from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.plans import transitions
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.upkeep import (
    DeregisterInput,
    EraseInput,
    ReleaseReservationInput,
    RetireInput,
    UpkeepResult,
)
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT
from temporal_plans.workflows.plans.attempt import StepAttempt
from temporal_plans.workflows.services.kinds.pod import QUICK_RETRY

ROUND_TIMEOUT = timedelta(hours=1, minutes=10)
"""The timeout of one activity, longer than its round (``UpkeepIntervals.round_timeout``)."""


def begin_work(step: StepAttempt) -> None:
    """Set the step IN_PROGRESS."""
    if step.state.status is not Status.IN_PROGRESS:  # else it is resumed
        step.set(transitions.working(step.state, workflow.now()))


def begin_release(step: StepAttempt) -> None:
    """Set the step PREPARED."""
    if step.state.status is not Status.PREPARED:
        step.set(transitions.releasing(step.state, workflow.now()))


async def until_done(
    step: StepAttempt, activity: str, request: RetireInput | ReleaseReservationInput
) -> None:
    """Repeat the activity until it is done; what it waits for is the step's reason meanwhile."""
    known = step.state.reason
    while True:
        answer = await execute(step, activity, request.but(known=known))
        if answer.done:
            return
        known = answer.waits
        step.say(known, Cause.AGENT)


async def execute(
    step: StepAttempt,
    activity: str,
    request: RetireInput | ReleaseReservationInput | EraseInput | DeregisterInput,
) -> UpkeepResult:
    """Run the activity; the step may be left meanwhile, which cancels it."""
    running = workflow.start_activity(
        activity,
        request,
        result_type=UpkeepResult,
        start_to_close_timeout=ROUND_TIMEOUT,
        heartbeat_timeout=HEARTBEAT_TIMEOUT,
        retry_policy=QUICK_RETRY,
        summary=step.place.element,
    )
    try:
        await step.wait_until(running.done)
    finally:
        if not running.done():
            running.cancel()
    result: UpkeepResult = await running
    return result
