"""Activities of a Service that start plans and look after them."""

from datetime import timedelta

from temporalio import activity
from temporalio.client import Client, WorkflowExecutionDescription, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.messages.service import ClosedPlans, OpenPlans, PlanStart

RUN = "run"
"""The memo that says which run of a service's plan a workflow is."""

STARTER = "starter"
"""The memo that says which run of the Service started it: another service of the same name, long
gone, may have had a plan of the same id."""


class PlanActivities:
    """``client`` is where the plans run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="start_plan")
    async def start_plan(self, start: PlanStart) -> None:
        """Start a plan's workflow, once for each ``run``: a retry finds it by its memos."""
        starter = activity.info().workflow_run_id
        described = await self._describe(start.workflow_id)
        if (
            described is not None
            and await described.memo_value(STARTER, "") == starter
            and await _run_of(described) >= start.run
        ):
            return
        try:
            await self._client.start_workflow(
                "Plan",
                start.input,
                id=start.workflow_id,
                task_queue=activity.info().task_queue,
                memo={RUN: start.run, STARTER: starter},
                static_summary=f"plan {start.input.name} of {start.workflow_id.rsplit('/', 1)[0]}"[
                    :190
                ],
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=timedelta(seconds=10),
            )
        except WorkflowAlreadyStartedError:
            described = await self._describe(start.workflow_id)
            if described is None or await _run_of(described) < start.run:
                raise ApplicationError(  # to be tried again
                    f"an earlier run of {start.workflow_id} has not closed yet", type="StillRunning"
                ) from None

    @activity.defn(name="closed_plans")
    async def closed_plans(self, plans: OpenPlans) -> ClosedPlans:
        """Which of the plans thought to be open are over, however they ended."""
        closed: list[str] = []
        for workflow_id, run in plans.runs.items():
            described = await self._describe(workflow_id)
            if described is None or (
                described.status is not WorkflowExecutionStatus.RUNNING
                and await _run_of(described) >= run
            ):
                closed.append(workflow_id)
        return ClosedPlans(workflow_ids=tuple(closed))

    async def _describe(self, workflow_id: str) -> WorkflowExecutionDescription | None:
        try:
            return await self._client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise


async def _run_of(described: WorkflowExecutionDescription) -> int:
    return int(await described.memo_value(RUN, 0))
