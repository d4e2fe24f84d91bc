"""The activity of a spoke's process on the queue of its own server: it reports to the hub."""

from collections.abc import Iterator

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
    WorkflowUpdateFailedError,
)
from temporalio.service import RPCError

from temporal_plans.activities.fleets.spoke.identity import Spoke
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.fleets.names import environment_id, fleet_plan_id
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.spokes import PlanAtSpoke, SpokeAnswer, SpokeReport

_PROGRESS_LIMIT = 10
_LINE_LENGTH = 200


class ReportActivities:
    """``hub`` reaches the environment, ``client`` the plans of the spoke."""

    def __init__(self, spoke: Spoke, hub: Client, client: Client) -> None:
        self._spoke = spoke
        self._hub = hub
        self._client = client
        self._last: tuple[SpokeReport, SpokeAnswer] | None = None

    @activity.defn(name="report_to_hub")
    async def report_to_hub(self, report: SpokeReport) -> SpokeAnswer:
        """Report plans to the environment, with the steps of those that run. The same report is not
        sent twice in turn. Raises ApplicationError (Refused, not retryable) when another spoke has
        replaced this one."""
        async with heartbeats():
            plans = {name: await self._with_progress(one) for name, one in report.plans.items()}
            whole = report.but(plans=plans, lineage=self._spoke.info.lineage)
            if self._last is not None and self._last[0] == whole:
                return self._last[1]
            handle = self._hub.get_workflow_handle(environment_id(self._spoke.environment))
            try:
                answer: SpokeAnswer = await handle.execute_update(
                    "spoke_report", whole, result_type=SpokeAnswer
                )
            except WorkflowUpdateFailedError as error:
                refusal = refusal_in(error.cause)
                if refusal is None:
                    raise
                raise refusal_error(refusal) from None
            self._last = (whole, answer)
            return answer

    async def _with_progress(self, plan: PlanAtSpoke) -> PlanAtSpoke:
        if plan.end is not None or plan.lost or not plan.started:
            return plan
        plan_id = fleet_plan_id(self._spoke.environment, plan.entity, plan.number)
        handle = self._client.get_workflow_handle(plan_id)
        try:
            view: PlanView = await handle.query("status", result_type=PlanView)
        except (RPCError, WorkflowQueryFailedError, WorkflowQueryRejectedError):
            return plan  # it has just ended, or its worker is away
        return plan.but(progress=tuple(_progress(view))[:_PROGRESS_LIMIT])


def _progress(view: PlanView) -> Iterator[str]:
    """Yield the steps that are neither complete nor waiting for their turn."""
    for phase in view.phases:
        for step in phase.steps:
            if step.status in (Status.COMPLETE, Status.PENDING):
                continue
            text = "; ".join(step.errors) or step.message
            line = f"{phase.name}/{step.name} {step.status}{': ' if text else ''}{text}"
            yield shortened(line, _LINE_LENGTH)
