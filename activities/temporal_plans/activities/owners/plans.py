"""Activities of a Service that start plans and check whether they run."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple, NoReturn

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

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.runs import described
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.values.text import listed
from temporal_plans.messages.owners import ClosedPlans, OpenPlans, PlanStart
from temporal_plans.messages.plans import (
    PLAN_RUN,
    PLAN_STARTER,
    CommandLog,
    EngineInput,
    PlanInput,
    PlanResult,
    Supersede,
)

LAST_RUN_ATTEMPTS_LIMIT = 5
"""Attempts to start a plan with the state and log of its last run. After them it starts without: a
run that does not answer must not block the next one."""

_START_RPC_TIMEOUT = timedelta(seconds=10)

_NAMED_LIMIT = 3
"""Plans that are named because another one waits for their end."""

_STILL_RUNNING_DELAY = timedelta(seconds=2)
"""Until the next attempt to start a plan while another one is in its way."""


class PlanActivities:
    """``client`` reaches the plans."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="start_plan")
    async def start_plan(self, start: PlanStart) -> None:
        """Start a plan's workflow, once for each ``run``: a retry finds it by its memos."""
        async with heartbeats():
            await self._start(start)

    async def _start(self, start: PlanStart) -> None:
        starter = start.starter or activity.info().workflow_run_id or ""
        expected = _Start(start.run, starter, start.at)
        if expected.is_covered_by(await self._newest(start)):
            return
        await self._end_rivals(start, expected)
        input = await self._input_from_last_run(start)
        # That may have taken long: another attempt may have started it, and it may have ended.
        if expected.is_covered_by(await self._newest(start)):
            return
        try:
            await self._client.start_workflow(
                "Plan",
                input,
                id=start.workflow_id,
                task_queue=activity.info().task_queue,
                memo={PLAN_RUN: expected.run, PLAN_STARTER: expected.starter},
                static_summary=f"plan {start.input.name} of {start.workflow_id.rsplit('/', 1)[0]}"[
                    :190
                ],
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                rpc_timeout=_START_RPC_TIMEOUT,
            )
        except WorkflowAlreadyStartedError:
            other = await described(self._client, start.workflow_id)
            current = await _start_of(other)
            if expected.is_covered_by(current):
                return
            if other is not None and current.starter == expected.starter:
                await self._supersede(other, f"run {expected.run} of the plan")
            elif other is not None and await self._is_left_over(current, expected):
                await self._await_left_over([other], start, expected)
            text = _conflict_text(start.workflow_id, expected, other, current)
            raise _still_running(text) from None

    async def _newest(self, start: PlanStart) -> "_Start":
        return await _start_of(await described(self._client, start.workflow_id))

    async def _end_rivals(self, start: PlanStart, expected: "_Start") -> None:
        """Supersede the open plans of a terminated owner, and raise until they have ended: nothing
        else would end them, and they must not run beside those of the new owner."""
        found = await gather_bounded(described(self._client, id) for id in start.rivals)
        left = [
            other
            for other in found
            if other is not None
            and other.status is WorkflowExecutionStatus.RUNNING
            and await self._is_left_over(await _start_of(other), expected)
        ]
        if left:
            await self._await_left_over(left, start, expected)

    async def _is_left_over(self, other: "_Start", expected: "_Start") -> bool:
        """Whether an owner started a plan that is not open any more: one workflow of an id is open
        at a time, and it is the one that starts a plan now."""
        if other.starter in ("", expected.starter):
            return False
        owner = await described(self._client, activity.info().workflow_id or "")
        if owner is None or owner.status is not WorkflowExecutionStatus.RUNNING:
            return False
        info = owner.raw_description.workflow_execution_info
        return expected.starter in (info.first_run_id, info.execution.run_id)

    async def _await_left_over(
        self,
        left: Sequence[WorkflowExecutionDescription],
        start: PlanStart,
        expected: "_Start",
    ) -> NoReturn:
        """Supersede plans that a terminated owner left, and raise StillRunning. They cancel by
        themselves what does not end in time."""
        for other in left:
            await self._supersede(other, "its owner was terminated, and another took its name")
        named = listed([f"{other.id} (run id {other.run_id})" for other in left], _NAMED_LIMIT)
        raise _still_running(
            f"run {expected.run} of plan {start.workflow_id} waits for the end of {named}, which a"
            " terminated service of this name started; it was asked to end, and cancels what does"
            " not end soon; if it never ends, terminate it"
        )

    async def _supersede(self, former: WorkflowExecutionDescription, why: str) -> None:
        """Supersede an older run that no other process would end: of a plan that was reset after
        its Service saw it end, or of a terminated owner."""
        handle = self._client.get_workflow_handle(former.id, run_id=former.run_id)
        with suppress(RPCError):  # it has just ended
            await handle.signal("supersede", Supersede(why=why))

    @activity.defn(name="closed_plans")
    async def closed_plans(self, plans: OpenPlans) -> ClosedPlans:
        """Return which of these plans have ended, in whatever way."""
        closed: list[str] = []
        async with heartbeats():
            for workflow_id in plans.workflow_ids:
                run = await described(self._client, workflow_id)
                if run is None or run.status is not WorkflowExecutionStatus.RUNNING:
                    closed.append(workflow_id)
        return ClosedPlans(workflow_ids=tuple(closed))

    async def _input_from_last_run(self, start: PlanStart) -> PlanInput:
        """Return the input of a plan that starts again, with the state and the log of its last run;
        without them if that run failed or was terminated. Raises RPCError while the server does not
        answer."""
        input, engine = start.input, start.input.engine or EngineInput()
        if not engine.first:
            if not start.keep_log:
                return input
            return input.but(engine=engine.but(log=await self._log_of(start)))
        ended = self._client.get_workflow_handle(start.workflow_id, result_type=PlanResult)
        try:
            result = await ended.result(rpc_timeout=_START_RPC_TIMEOUT)
            log = await ended.query("log", result_type=CommandLog)
        except (
            WorkflowFailureError,
            WorkflowQueryFailedError,
            WorkflowQueryRejectedError,
            RPCError,
        ) as error:
            _raise_if_transient(error)
            starts = tuple(first for first in engine.first if first.verb is Verb.START)
            return input.but(engine=engine.but(first=starts))
        restarts = engine.first[0].verb is Verb.RESTART
        arguments = result.view.parameters if restarts else input.arguments
        return input.but(engine=engine.but(state=result.state, log=log), arguments=arguments)

    async def _log_of(self, start: PlanStart) -> CommandLog:
        """Return the commands to the plan's former runs; none if they are not available."""
        former = self._client.get_workflow_handle(start.workflow_id)
        try:
            run = await described(self._client, start.workflow_id)
            if run is None or (await _start_of(run)).starter != start.starter:
                return CommandLog()
            log: CommandLog = await former.query(
                "log", result_type=CommandLog, rpc_timeout=_START_RPC_TIMEOUT
            )
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError, RPCError) as error:
            _raise_if_transient(error)
            activity.logger.info("%s has no log of its former run: %s", start.workflow_id, error)
            return CommandLog()
        return log


def _raise_if_transient(error: Exception) -> None:
    """Raise an error that the next attempt may not have."""
    transient = isinstance(error, RPCError) and error.status is not RPCStatusCode.NOT_FOUND
    if transient and activity.info().attempt < LAST_RUN_ATTEMPTS_LIMIT:
        raise error


class _Start(NamedTuple):
    """Identifies the start of a plan's workflow, by its memos and its time."""

    run: int
    starter: str
    at: datetime | None = None

    def is_covered_by(self, newest: "_Start") -> bool:
        """Whether the plan's newest workflow is the one to start, or a later one. A Service that
        was reset reuses its run numbers; the workflows that had them started earlier."""
        is_ours = newest.starter == self.starter and newest.run >= self.run
        return is_ours and (self.at is None or newest.at is None or newest.at >= self.at)


async def _start_of(plan: WorkflowExecutionDescription | None) -> _Start:
    """Return the start of a plan's workflow; run 0 and starter "" if no service started it."""
    if plan is None:
        return _Start(0, "")
    run, starter = await plan.memo_value(PLAN_RUN, 0), await plan.memo_value(PLAN_STARTER, "")
    return _Start(int(run), str(starter), plan.start_time)


def _still_running(text: str) -> ApplicationError:
    """Return a retryable error: the end of another plan is near."""
    return ApplicationError(text, type="StillRunning", next_retry_delay=_STILL_RUNNING_DELAY)


def _conflict_text(
    workflow_id: str, expected: _Start, other: WorkflowExecutionDescription | None, current: _Start
) -> str:
    """Return why the plan can't be started yet, and the fix."""
    waiting = f"run {expected.run} of plan {workflow_id} waits"
    if other is None:
        return f"{waiting}: a workflow of that id was running just now"
    if not current.starter:
        origin = "which no service started"
    elif current.starter == expected.starter:
        origin = f"which is the plan's run {current.run}"
    else:
        origin = f"which run {current.starter} of a service started"
    return (
        f"{waiting}: a workflow of that id still runs (run id {other.run_id}), {origin};"
        " wait for its end, or terminate it"
    )
