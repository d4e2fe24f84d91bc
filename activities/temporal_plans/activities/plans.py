"""Activities of a Service that start plans and look after them."""

from contextlib import suppress
from datetime import timedelta
from typing import NamedTuple

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
from temporal_plans.activities.runs import described
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
        mine = _Start(start.run, start.starter or activity.info().workflow_run_id or "")
        if await self._is_begun(start, mine):
            return
        input = await self._from_where_it_ended(start)
        # That may have taken long: another attempt may have begun it, and it may be over already.
        if await self._is_begun(start, mine):
            return
        try:
            await self._client.start_workflow(
                "Plan",
                input,
                id=start.workflow_id,
                task_queue=activity.info().task_queue,
                memo={RUN: mine.run, STARTER: mine.starter},
                static_summary=f"plan {start.input.name} of {start.workflow_id.rsplit('/', 1)[0]}"[
                    :190
                ],
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=timedelta(seconds=10),
            )
        except WorkflowAlreadyStartedError:
            other = await described(self._client, start.workflow_id)
            begun = await _start_of(other)
            if other is not None and _is_done(start, mine, other, begun):
                return
            if other is not None and begun.starter == mine.starter:
                await self._ask_to_end(other, mine)
            text = _in_the_way(start.workflow_id, mine, other, begun)
            raise ApplicationError(text, type="StillRunning") from None  # to be tried again

    async def _is_begun(self, start: PlanStart, mine: "_Start") -> bool:
        """Whether there has been such a run, or a later one."""
        plan = await described(self._client, start.workflow_id)
        return plan is not None and _is_done(start, mine, plan, await _start_of(plan))

    async def _ask_to_end(self, former: WorkflowExecutionDescription, mine: "_Start") -> None:
        """A run of the plan that its Service knows to be over, and that somebody has reset: nobody
        else would tell it."""
        handle = self._client.get_workflow_handle(former.id, run_id=former.run_id)
        with suppress(RPCError):  # it has just ended
            await handle.signal("supersede", Supersede(why=f"run {mine.run} of the plan"))

    @activity.defn(name="closed_plans")
    async def closed_plans(self, plans: OpenPlans) -> ClosedPlans:
        """Which of the plans thought to be open are over, however they ended."""
        closed: list[str] = []
        for workflow_id in plans.workflow_ids:
            run = await described(self._client, workflow_id)
            if run is None or run.status is not WorkflowExecutionStatus.RUNNING:
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
            run = await described(self._client, start.workflow_id)
            if run is None or (await _start_of(run)).starter != start.starter:
                return CommandLog()
            log: CommandLog = await former.query(
                "log", result_type=CommandLog, rpc_timeout=timedelta(seconds=10)
            )
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError, RPCError) as error:
            _try_again_after(error)
            activity.logger.info("%s has no log to go on from: %s", start.workflow_id, error)
            return CommandLog()
        return log


def _try_again_after(error: Exception) -> None:
    """Raise what may be over at the next attempt."""
    passes = isinstance(error, RPCError) and error.status is not RPCStatusCode.NOT_FOUND
    if passes and activity.info().attempt < ATTEMPTS:
        raise error


class _Start(NamedTuple):
    """Which start a plan's workflow came from: RUN and STARTER."""

    run: int
    starter: str


async def _start_of(plan: WorkflowExecutionDescription | None) -> _Start:
    """(0, "") when no service started it, and when there is none."""
    if plan is None:
        return _Start(0, "")
    run, starter = await plan.memo_value(RUN, 0), await plan.memo_value(STARTER, "")
    return _Start(int(run), str(starter))


def _is_done(
    start: PlanStart, mine: _Start, plan: WorkflowExecutionDescription, begun: _Start
) -> bool:
    """Whether the plan's newest workflow is the one to be started, or one that came after it."""
    ours = begun.starter == mine.starter and begun.run >= mine.run
    return ours and (start.at is None or plan.start_time >= start.at)


def _in_the_way(
    workflow_id: str, mine: _Start, other: WorkflowExecutionDescription | None, begun: _Start
) -> str:
    """Why the plan can't be started yet, and what would help."""
    wanted = f"run {mine.run} of plan {workflow_id} waits"
    if other is None:
        return f"{wanted}: a workflow of that id was open a moment ago"
    if not begun.starter:
        whose = "which no service started"
    elif begun.starter == mine.starter:
        whose = f"which is the plan's run {begun.run}"
    else:
        whose = f"which run {begun.starter} of a service started"
    return (
        f"{wanted}: a workflow of that id is still open (run id {other.run_id}), {whose};"
        " it must end, or be terminated, first"
    )
