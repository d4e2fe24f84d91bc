"""Activities of ``ScheduledRun``: start a service's plan, wait for that run of it, stop it."""

import asyncio
from contextlib import suppress
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
from temporalio.exceptions import ApplicationError, FailureError
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.runs import described
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.status import Status
from temporal_plans.messages.cluster import service_id
from temporal_plans.messages.plan import CommandLog, LogEntry, PlanResult, PlanView
from temporal_plans.messages.scheduled import ScheduledPlan, ScheduledResult, ScheduledStart
from temporal_plans.messages.service import StartPlan

HEARTBEAT = timedelta(seconds=5)
LOOK = timedelta(seconds=15)
"""How often the plan is asked whether somebody stopped it: its workflow does not end by that."""

ANSWER = timedelta(seconds=20)

_CUT_OFF = "AcceptedUpdateCompletedWorkflow"
"""The type of failure when a workflow ended under an update: to be tried again."""

_BEGINS = (Verb.START, Verb.RESTART, Verb.CONTINUE, Verb.FORCE_COMPLETE)


class ScheduledActivities:
    """``client`` is where services and plans run."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="start_scheduled_plan")
    async def start_scheduled_plan(self, request: ScheduledPlan) -> ScheduledStart:
        """Start the plan, unless it is at work already. Once for each run of the schedule: our
        start is found again in the plan's log by its reason.

        Raises ApplicationError, not retryable, when another attempt would end the same way: there
        is no such service or plan, its parameters are refused, or it waits for a person.
        """
        info = activity.info()
        service = request.service.strip("/")
        plan_id = f"{service}/{request.plan}"
        mark = f"run {info.workflow_run_id} of the schedule"
        before = await described(self._client, plan_id)
        if before is not None and info.attempt > 1 and await self._is_marked(before, mark):
            return _started(before, mark)
        command = Command(
            parameters=request.parameters, by=f"schedule {request.schedule}"[:200], reason=mark
        )
        if before is not None and before.status is WorkflowExecutionStatus.RUNNING:
            if busy := await self._busy(plan_id):
                return ScheduledStart(plan_id=plan_id, started=False, message=busy)
            await self._tell(plan_id, Verb.START.value, command)
            return _started(before, mark)
        await self._start_in_service(service, request.plan, command)
        run = await described(self._client, plan_id)
        with suppress(WorkflowQueryFailedError):
            if run is not None and await self._is_marked(run, mark):
                return _started(run, mark)
        # One that fails at once may have no log; waiting for it tells why it did.
        run = await described(self._client, plan_id)
        if run is None or not _failed(run) or (before and _same(before, run)):
            raise ApplicationError(f"plan {plan_id} is still being started", type="NotStartedYet")
        return _started(run, mark)

    @activity.defn(name="wait_for_plan")
    async def wait_for_plan(self, start: ScheduledStart) -> ScheduledResult:
        """Until that run of the plan has ended. Raises ApplicationError (PlanNotComplete, not
        retryable) when it did not end COMPLETE, was stopped, or waits in ERROR for somebody."""
        handle = self._client.get_workflow_handle(
            start.plan_id, run_id=start.run_id, result_type=PlanResult
        )
        ending = asyncio.ensure_future(handle.result())
        loop = asyncio.get_running_loop()
        look_at = loop.time() + LOOK.total_seconds()
        try:
            while not (await asyncio.wait([ending], timeout=HEARTBEAT.total_seconds()))[0]:
                activity.heartbeat()
                if loop.time() >= look_at:
                    await self._check(start)
                    look_at = loop.time() + LOOK.total_seconds()
            result = ending.result()
        except WorkflowFailureError as error:
            raise _incomplete(f"plan {start.plan_id}: {_text(error)}") from None
        finally:
            ending.cancel()
        if result.status is not Status.COMPLETE:
            how = "a newer configuration took its place" if result.superseded else "it was stopped"
            raise _incomplete(f"plan {start.plan_id} ended {result.status}: {how}")
        return ScheduledResult(plan_id=start.plan_id, started=True, status=result.status)

    @activity.defn(name="stop_scheduled_plan")
    async def stop_scheduled_plan(self, start: ScheduledStart) -> None:
        """Stop the plan, if it is still the run that we began."""
        run = await described(self._client, start.plan_id)
        if run is None or run.status is not WorkflowExecutionStatus.RUNNING:
            return
        if run.raw_info.first_run_id != start.first_run_id:
            return
        if not await self._is_marked(run, start.mark):
            return
        command = Command(by="schedule", reason=f"{start.mark} was cancelled")
        try:
            await self._tell(start.plan_id, Verb.STOP.value, command)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:  # else it has just ended
                raise

    # --- asking and telling ---

    async def _start_in_service(self, service: str, plan: str, command: Command) -> None:
        said = {name: getattr(command, name) for name in Command.model_fields}
        try:
            outcome = await self._tell(
                service_id(service), "start_plan", StartPlan(plan=plan, **said)
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            raise ApplicationError(
                f"there is no service {service!r} any more; delete its schedules with "
                "`temporal plan schedule delete ID`, or deploy it again",
                type="ServiceNotFound",
                non_retryable=True,
            ) from None  # what fails innermost is what people read
        if outcome.code == 208:  # it was started by somebody else just now
            raise ApplicationError(outcome.message, type="StartedMeanwhile")
        if outcome.refused:
            raise ApplicationError(outcome.message, type="CommandRefused", non_retryable=True)

    async def _tell(self, workflow_id: str, update: str, command: Command) -> Outcome:
        try:
            outcome: Outcome = await self._client.get_workflow_handle(workflow_id).execute_update(
                update, command, result_type=Outcome, rpc_timeout=ANSWER
            )
            return outcome
        except WorkflowUpdateFailedError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.type == _CUT_OFF:
                raise
            text = cause.message if isinstance(cause, FailureError) else str(cause)
            raise ApplicationError(text, type="CommandRefused", non_retryable=True) from None

    async def _busy(self, plan_id: str) -> str:
        """Why an open plan can't be begun; empty when nothing of it has begun.

        Raises ApplicationError when it will not come right without a person: an operator's
        interrupt in the middle is not lifted by a schedule.
        """
        view: PlanView = await self._client.get_workflow_handle(plan_id).query(
            "status", result_type=PlanView, rpc_timeout=ANSWER
        )
        if view.status is Status.COMPLETE:
            return ""
        if view.status is Status.WAITING and not _begun(view, await self._log(plan_id)):
            return ""
        if view.status in (Status.ERROR, Status.WAITING):
            waits = "; ".join((*view.errors, *view.waiting))
            raise _incomplete(
                f"plan {plan_id} is {view.status} in the middle of an earlier run, and waits for "
                f"somebody: {waits or 'continue, stop or restart it'}"
            )
        return f"plan {plan_id} was at work already ({view.status}); it was left alone"

    async def _check(self, start: ScheduledStart) -> None:
        """Raises ApplicationError when our run of the plan came to its end without its workflow."""
        try:
            log = await self._log(start.plan_id)
            view = await self._client.get_workflow_handle(start.plan_id).query(
                "status", result_type=PlanView, rpc_timeout=ANSWER
            )
        except (RPCError, WorkflowQueryFailedError) as error:
            activity.logger.info("%s does not answer: %s", start.plan_id, error)
            return
        ours = _ours(log, start.mark)
        if ours is None:
            return  # another run of it; the result of ours is on its way
        for entry in log.entries:
            if entry.verb == Verb.STOP and entry.at >= ours.at and entry.outcome.changed:
                why = f": {entry.reason}" if entry.reason else ""
                raise _incomplete(f"plan {start.plan_id} was stopped by {entry.by}{why}")
        if view.status is Status.ERROR:
            raise _incomplete(f"plan {start.plan_id} is ERROR: {'; '.join(view.errors)}")

    async def _is_marked(self, run: WorkflowExecutionDescription, mark: str) -> bool:
        """Whether that very run was told our start. One that failed might never answer."""
        if _failed(run):
            return False
        return _ours(await self._log(run.id, run.run_id), mark) is not None

    async def _log(self, plan_id: str, run_id: str = "") -> CommandLog:
        log: CommandLog = await self._client.get_workflow_handle(
            plan_id, run_id=run_id or None
        ).query("log", result_type=CommandLog, rpc_timeout=ANSWER)
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
    """Whether it ended in another way than by its own result."""
    return run.status not in (
        WorkflowExecutionStatus.RUNNING,
        WorkflowExecutionStatus.CONTINUED_AS_NEW,
        WorkflowExecutionStatus.COMPLETED,
    )


def _same(one: WorkflowExecutionDescription, other: WorkflowExecutionDescription) -> bool:
    """Whether they are of one chain of runs, each of which continued the one before."""
    return one.raw_info.first_run_id == other.raw_info.first_run_id


def _begun(view: PlanView, log: CommandLog) -> bool:
    """Whether somebody began it, and nobody stopped it since. What its steps read does not tell:
    one that simply works says nothing in between."""
    begun = any(step.started for phase in view.phases for step in phase.steps)
    for entry in log.entries:
        if not entry.outcome.changed or (view.started and entry.at < view.started):
            continue
        if entry.verb in _BEGINS:
            begun = True
        elif entry.verb == Verb.STOP:
            begun = False
    return begun


def _ours(log: CommandLog, mark: str) -> LogEntry | None:
    return next((entry for entry in reversed(log.entries) if entry.reason == mark), None)


def _incomplete(text: str) -> ApplicationError:
    return ApplicationError(text, type="PlanNotComplete", non_retryable=True)


def _text(error: WorkflowFailureError) -> str:
    cause = error.cause
    while isinstance(cause, FailureError) and cause.cause is not None:
        cause = cause.cause
    return str(cause)
