"""The workflow that a Temporal Schedule starts for a plan of a service.

It lasts as long as the run of the plan that it began, so that the schedule's overlap policy is
about the plan's work and not about a moment's command; and it fails when the plan fails, so that
the schedule shows it.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from temporal_plans.messages.scheduled import ScheduledPlan, ScheduledResult, ScheduledStart

SILENCE = timedelta(seconds=30)
"""How long the wait may go without a heartbeat before another worker takes it over."""

_FOR_EVER = timedelta(days=3650)  # Temporal wants one of an activity's timeouts to be set


@workflow.defn(name="ScheduledRun")
class ScheduledRun:
    """Start a plan of a service, and end with it."""

    @workflow.run
    async def run(self, request: ScheduledPlan) -> ScheduledResult:
        start = await workflow.execute_activity(
            "start_scheduled_plan",
            request,
            result_type=ScheduledStart,
            start_to_close_timeout=timedelta(minutes=1),
            retry_policy=RetryPolicy(maximum_interval=timedelta(minutes=1)),
            summary=f"start {request.plan}",
        )
        if not start.started:
            return ScheduledResult(plan_id=start.plan_id, started=False, message=start.message)
        try:
            result: ScheduledResult = await workflow.execute_activity(
                "wait_for_plan",
                start,
                result_type=ScheduledResult,
                start_to_close_timeout=_FOR_EVER,
                heartbeat_timeout=SILENCE,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=f"until {request.plan} has ended",
            )
            return result
        except ActivityError as error:
            if is_cancelled_exception(error):
                await self._stop(start)
            raise

    async def _stop(self, start: ScheduledStart) -> None:
        """Cancelled, by ``--overlap cancel-other`` or by somebody: the plan is not to go on."""
        await workflow.execute_activity(
            "stop_scheduled_plan",
            start,
            start_to_close_timeout=timedelta(minutes=1),
            schedule_to_close_timeout=timedelta(hours=1),
            cancellation_type=workflow.ActivityCancellationType.ABANDON,
            summary="stop the plan",
        )
