"""Activities of ``ScheduledRun``: start a service's plan, wait for that run, stop it."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.mechanics.failure_text import failure_text, message_of
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.runs import described
from temporal_plans.activities.mechanics.update_failures import (
    non_retryable,
    was_not_processed,
)
from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb, verb_of
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import StartPlan
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import CommandLog, LogEntry, PlanResult
from temporal_plans.messages.schedules import ScheduledPlan, ScheduledResult, ScheduledStart

_SCHEDULED_RPC_TIMEOUT = timedelta(seconds=20)


@dataclass(frozen=True)
class ScheduledIntervals:
    """``check``: how often a waiting activity queries whether the plan was stopped, for a stop does
    not end the plan's workflow."""

    heartbeat: timedelta = timedelta(seconds=5)
    check: timedelta = timedelta(seconds=15)


class ScheduledActivities:
    """``client`` reaches services and plans."""

    def __init__(
        self, client: Client, intervals: ScheduledIntervals = ScheduledIntervals()
    ) -> None:
        self._client = client
        self._intervals = intervals

    @activity.defn(name="start_scheduled_plan")
    async def start_scheduled_plan(self, request: ScheduledPlan) -> ScheduledStart:
        """Start the plan, unless it is in progress. Starts it once for each run of the schedule: a
        retry finds the start in the plan's log by its ``mark``.

        Raises a non-retryable ApplicationError when a retry would fail as well: there is no such
        service or plan, its parameters are refused, or it waits for an operator.
        """
        info = activity.info()
        service = request.service.strip("/")
        plan_id = f"{service}/{request.plan}"
        mark = f"run {info.workflow_run_id} of the schedule"
        before = await described(self._client, plan_id)
        if before is not None and info.attempt > 1 and await self._is_marked(before, mark):
            return _started(before, mark)
        command = Command(
            parameters=request.parameters,
            by=f"schedule {request.schedule}"[:200],
            reason=mark,
            mark=mark,
        )
        if before is not None and before.status is WorkflowExecutionStatus.RUNNING:
            if reason := await self._busy_reason(plan_id):
                return ScheduledStart(plan_id=plan_id, started=False, message=reason)
            await self._update(plan_id, Verb.START.value, command)
            return _started(before, mark)
        await self._start_in_service(service, request.plan, command)
        run = await described(self._client, plan_id)
        with suppress(WorkflowQueryFailedError):
            if run is not None and await self._is_marked(run, mark):
                return _started(run, mark)
        # A run that fails at once may have no log; wait_for_plan then reports its failure.
        run = await described(self._client, plan_id)
        if run is None or not _failed(run) or (before and _same_chain(before, run)):
            raise ApplicationError(f"plan {plan_id} is still being started", type="NotStartedYet")
        return _started(run, mark)

    @activity.defn(name="wait_for_plan")
    async def wait_for_plan(self, start: ScheduledStart) -> ScheduledResult:
        """Wait until that run of the plan has ended. Raises ApplicationError (PlanNotComplete,
        non-retryable) when it did not end COMPLETE, was stopped, or is in ERROR."""
        handle = self._client.get_workflow_handle(
            start.plan_id, run_id=start.run_id, result_type=PlanResult
        )
        heartbeat = self._intervals.heartbeat.total_seconds()
        check = self._intervals.check.total_seconds()
        ending = asyncio.ensure_future(handle.result())
        loop = asyncio.get_running_loop()
        next_check = loop.time() + check
        try:
            while not (await asyncio.wait([ending], timeout=heartbeat))[0]:
                activity.heartbeat()
                if loop.time() >= next_check:
                    await self._check(start)
                    next_check = loop.time() + check
            result = ending.result()
        except WorkflowFailureError as error:
            raise _incomplete(f"plan {start.plan_id}: {failure_text(error.cause)}") from None
        finally:
            ending.cancel()
        if result.status is not Status.COMPLETE:
            reason = "superseded by a newer configuration" if result.superseded else "stopped"
            raise _incomplete(f"plan {start.plan_id} ended {result.status}: {reason}")
        return ScheduledResult(plan_id=start.plan_id, started=True, status=result.status)

    @activity.defn(name="stop_scheduled_plan")
    async def stop_scheduled_plan(self, start: ScheduledStart) -> None:
        """Stop the plan, if it is still the run that the schedule started."""
        run = await described(self._client, start.plan_id)
        if run is None or run.status is not WorkflowExecutionStatus.RUNNING:
            return
        if run.raw_info.first_run_id != start.first_run_id:
            return
        if not await self._is_marked(run, start.mark):
            return
        command = Command(by="schedule", reason=f"{start.mark} was cancelled")
        try:
            await self._update(start.plan_id, Verb.STOP.value, command)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # else it has just ended
                raise

    # --- updates and queries ---

    async def _start_in_service(self, service: str, plan: str, command: Command) -> None:
        fields = {name: getattr(command, name) for name in Command.model_fields}
        try:
            outcome = await self._update(
                service_id(service), "start_plan", StartPlan(plan=plan, **fields)
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            reason = Reason(
                field="service",
                problem=f"{service!r} does not exist any more",
                fix="delete its schedules with `temporal plan schedule delete ID`, or deploy it "
                "again",
            )
            refusal = Refusal(code=Code.NOT_FOUND, reasons=(reason,))
            # From None: the innermost failure is the one that is shown.
            raise refusal_error(refusal, type="ServiceNotFound") from None
        if outcome.result is Result.ALREADY:  # another caller started it just now
            raise ApplicationError(outcome.message, type="StartedMeanwhile")
        if outcome.refused:
            refusal = outcome.refusal or Refusal.of(Code.FAILED, outcome.message)
            raise refusal_error(refusal, text=outcome.message)

    async def _update(self, workflow_id: str, update: str, command: Command) -> Outcome:
        try:
            outcome: Outcome = await self._client.get_workflow_handle(workflow_id).execute_update(
                update, command, result_type=Outcome, rpc_timeout=_SCHEDULED_RPC_TIMEOUT
            )
            return outcome
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if was_not_processed(cause):
                raise
            raise non_retryable(cause, message_of(cause)) from None

    async def _busy_reason(self, plan_id: str) -> str:
        """Return why an open plan can't be started; empty when none of its work has started.

        Raises ApplicationError when the plan waits for an operator: a schedule does not resume a
        plan that an operator interrupted.
        """
        view: PlanView = await self._client.get_workflow_handle(plan_id).query(
            "status", result_type=PlanView, rpc_timeout=_SCHEDULED_RPC_TIMEOUT
        )
        if view.status is Status.COMPLETE:
            return ""
        if view.status is Status.WAITING and not _was_started(view, await self._log(plan_id)):
            return ""
        if view.status in (Status.ERROR, Status.WAITING):
            waits = "; ".join((*view.errors, *view.waiting))
            raise _incomplete(
                f"plan {plan_id} is {view.status} in an earlier run and waits for an operator: "
                f"{waits or 'continue, stop or restart it'}"
            )
        return f"plan {plan_id} was already in progress ({view.status}); it was not started again"

    async def _check(self, start: ScheduledStart) -> None:
        """Raise ApplicationError when the schedule's run was stopped or is in ERROR."""
        try:
            log = await self._log(start.plan_id)
            view = await self._client.get_workflow_handle(start.plan_id).query(
                "status", result_type=PlanView, rpc_timeout=_SCHEDULED_RPC_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError) as error:
            activity.logger.info("%s does not answer: %s", start.plan_id, error)
            return
        ours = _entry_of(log, start.mark)
        if ours is None:
            return  # another run of the plan; the result of ours arrives soon
        for entry in log.entries:
            if entry.verb == Verb.STOP and entry.at >= ours.at and entry.outcome.changed:
                why = f": {entry.reason}" if entry.reason else ""
                raise _incomplete(f"plan {start.plan_id} was stopped by {entry.by}{why}")
        if view.status is Status.ERROR:
            raise _incomplete(f"plan {start.plan_id} is ERROR: {'; '.join(view.errors)}")

    async def _is_marked(self, run: WorkflowExecutionDescription, mark: str) -> bool:
        """Whether that run's log has our start. A failed run is not queried: it may not answer."""
        if _failed(run):
            return False
        return _entry_of(await self._log(run.id, run.run_id), mark) is not None

    async def _log(self, plan_id: str, run_id: str = "") -> CommandLog:
        log: CommandLog = await self._client.get_workflow_handle(
            plan_id, run_id=run_id or None
        ).query("log", result_type=CommandLog, rpc_timeout=_SCHEDULED_RPC_TIMEOUT)
        return log


def _started(run: WorkflowExecutionDescription, mark: str) -> ScheduledStart:
    return ScheduledStart(
        plan_id=run.id,
        started=True,
        mark=mark,
        run_id=run.run_id,
        first_run_id=run.raw_info.first_run_id,
    )


def _failed(run: WorkflowExecutionDescription) -> bool:
    """Whether it ended without a result."""
    return run.status not in (
        WorkflowExecutionStatus.RUNNING,
        WorkflowExecutionStatus.CONTINUED_AS_NEW,
        WorkflowExecutionStatus.COMPLETED,
    )


def _same_chain(first: WorkflowExecutionDescription, second: WorkflowExecutionDescription) -> bool:
    """Whether both are of one chain of continued runs."""
    return first.raw_info.first_run_id == second.raw_info.first_run_id


def _was_started(view: PlanView, log: CommandLog) -> bool:
    """Whether the plan was started and not stopped since. The steps' statuses are not enough: a
    step at work reports nothing in between."""
    started = any(step.started for phase in view.phases for step in phase.steps)
    for entry in log.entries:
        if not entry.outcome.changed or (view.started and entry.at < view.started):
            continue
        verb = verb_of(entry.verb)
        if verb is not None and verb.lets_work_begin:
            started = True
        elif verb is Verb.STOP:
            started = False
    return started


def _entry_of(log: CommandLog, mark: str) -> LogEntry | None:
    return next((entry for entry in reversed(log.entries) if entry.mark == mark), None)


def _incomplete(text: str) -> ApplicationError:
    return ApplicationError(text, type="PlanNotComplete", non_retryable=True)
