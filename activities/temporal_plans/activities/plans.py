"""Activities of a Service that start plans and look after them."""

from contextlib import suppress
from datetime import timedelta

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowQueryRejectedError,
)
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.heartbeat import heartbeats
from temporal_plans.domain.commands import Verb
from temporal_plans.messages.plan import CommandLog, PlanInput, PlanResult, Supersede
from temporal_plans.messages.service import ClosedPlans, OpenPlans, PlanStart

RUN = "run"
"""The memo that says which run of a service's plan a workflow is."""

STARTER = "starter"
"""The memo that says which run of the Service started it: another service of the same name, long
gone, may have had a plan of the same id."""


ATTEMPTS = 5
"""Attempts to start a plan that want what its last run left. Then it begins without: a run that
answers nobody must not keep the next one from its start."""


class PlanActivities:
    """``client`` is where the plans run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="start_plan")
    async def start_plan(self, start: PlanStart) -> None:
        """Start a plan's workflow, once for each ``run``: a retry finds it by its memos."""
        async with heartbeats():
            await self._start(start)

    async def _start(self, start: PlanStart) -> None:
        starter = start.starter or activity.info().workflow_run_id or ""
        described = await self._describe(start.workflow_id)
        if described is not None and await _start_of(described) == (start.run, starter):
            return
        try:
            await self._client.start_workflow(
                "Plan",
                await self._from_where_it_ended(start),
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
            if described is None or await _start_of(described) != (start.run, starter):
                await self._ask_to_end(start, starter, described)
                raise ApplicationError(  # to be tried again
                    await _in_the_way(start, starter, described), type="StillRunning"
                ) from None

    async def _ask_to_end(
        self, start: PlanStart, starter: str, described: WorkflowExecutionDescription | None
    ) -> None:
        """A former run of the plan that its Service knows to be over, and that somebody has reset:
        nobody else would tell it."""
        if described is None:
            return
        run, other = await _start_of(described)
        if other == starter and run < start.run:
            handle = self._client.get_workflow_handle(start.workflow_id, run_id=described.run_id)
            with suppress(RPCError):  # it has just ended
                await handle.signal("supersede", Supersede(why=f"run {start.run} of the plan"))

    @activity.defn(name="closed_plans")
    async def closed_plans(self, plans: OpenPlans) -> ClosedPlans:
        """Which of the plans thought to be open are over, however they ended."""
        closed: list[str] = []
        for workflow_id in plans.workflow_ids:
            described = await self._describe(workflow_id)
            if described is None or described.status is not WorkflowExecutionStatus.RUNNING:
                closed.append(workflow_id)
        return ClosedPlans(workflow_ids=tuple(closed))

    async def _from_where_it_ended(self, start: PlanStart) -> PlanInput:
        """A plan that is begun anew has the state and the log of its last run, where that came to
        an end; one that failed or was terminated begins from nothing. Raises RPCError while the
        server does not answer."""
        input = start.input
        if not input.first:
            return input.but(log=await self._log_of(start)) if start.keep_log else input
        ended = self._client.get_workflow_handle(start.workflow_id, result_type=PlanResult)
        try:
            result = await ended.result(rpc_timeout=timedelta(seconds=10))
            log = await ended.query("log", result_type=CommandLog)
        except (
            WorkflowFailureError,
            WorkflowQueryFailedError,
            WorkflowQueryRejectedError,
            RPCError,
        ) as error:
            _try_again_after(error)
            return input.but(first=tuple(c for c in input.first if c.verb is Verb.START))
        kept = input.first[0].verb is Verb.RESTART
        arguments = result.view.parameters if kept else input.arguments
        return input.but(state=result.state, log=log, arguments=arguments)

    async def _log_of(self, start: PlanStart) -> CommandLog:
        """The commands to the plan's former runs; none when they can't be had any more."""
        former = self._client.get_workflow_handle(start.workflow_id)
        try:
            described = await self._describe(start.workflow_id)
            if described is None or (await _start_of(described))[1] != start.starter:
                return CommandLog()
            log: CommandLog = await former.query(
                "log", result_type=CommandLog, rpc_timeout=timedelta(seconds=10)
            )
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError, RPCError) as error:
            _try_again_after(error)
            activity.logger.info("%s has no log to go on from: %s", start.workflow_id, error)
            return CommandLog()
        return log

    async def _describe(self, workflow_id: str) -> WorkflowExecutionDescription | None:
        try:
            return await self._client.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return None
            raise


def _try_again_after(error: Exception) -> None:
    """Raise what may be over at the next attempt."""
    passes = isinstance(error, RPCError) and error.status is not RPCStatusCode.NOT_FOUND
    if passes and activity.info().attempt < ATTEMPTS:
        raise error


async def _start_of(described: WorkflowExecutionDescription) -> tuple[int, str]:
    """Which start it came from: RUN and STARTER; (0, "") when no service's."""
    run, starter = await described.memo_value(RUN, 0), await described.memo_value(STARTER, "")
    return int(run), str(starter)


async def _in_the_way(
    start: PlanStart, starter: str, described: WorkflowExecutionDescription | None
) -> str:
    """Why the plan can't be started yet, and what would help."""
    wanted = f"run {start.run} of plan {start.workflow_id} waits"
    if described is None:
        return f"{wanted}: a workflow of that id was open a moment ago"
    run, other = await _start_of(described)
    if not other:
        whose = "which no service started"
    elif other == starter:
        whose = f"which is the plan's run {run}"
    else:
        whose = f"which run {other} of a service started"
    return (
        f"{wanted}: a workflow of that id is still open (run id {described.run_id}), {whose};"
        " it must end, or be terminated, first"
    )
