"""The workflow that a Temporal Schedule starts for a plan of a service.

It runs as long as the plan run that it started, so that the schedule's overlap policy applies to
the plan's work and not only to the start command; and it fails when the plan fails, so that the
schedule shows the failure.
"""

from datetime import timedelta

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, is_cancelled_exception

from temporal_plans.messages.schedules import ScheduledPlan, ScheduledResult, ScheduledStart
from temporal_plans.workflows.mechanics.externs import require_plugin

WAIT_HEARTBEAT_TIMEOUT = timedelta(seconds=30)
"""The time without a heartbeat after which another worker takes over the wait for the plan."""

_NO_TIMEOUT = timedelta(days=3650)  # Temporal requires one timeout of an activity


@workflow.defn(name="ScheduledRun")
class ScheduledRun:
    """Starts a plan of a service, and ends with it."""

    @workflow.run
    async def run(self, request: ScheduledPlan) -> ScheduledResult:
        require_plugin()
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
                start_to_close_timeout=_NO_TIMEOUT,
                heartbeat_timeout=WAIT_HEARTBEAT_TIMEOUT,
                cancellation_type=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
                summary=f"until {request.plan} has ended",
            )
            return result
        except ActivityError as error:
            if is_cancelled_exception(error):
                await self._stop(start)
            raise

    async def _stop(self, start: ScheduledStart) -> None:
        """Stop the plan after a cancellation (by ``--overlap cancel-other`` or an operator)."""
        await workflow.execute_activity(
            "stop_scheduled_plan",
            start,
            start_to_close_timeout=timedelta(minutes=1),
            schedule_to_close_timeout=timedelta(hours=1),
            cancellation_type=workflow.ActivityCancellationType.ABANDON,
            summary="stop the plan",
        )
