"""Verbs for earlier runs of plans, and for the expected duration of a run."""

from collections.abc import Iterable, Sequence

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import PlanNotFound, PlansError, ServiceNotFound
from temporal_plans.client.reading.expectation import Expectation, seconds_of
from temporal_plans.client.temporal.executions import Ended, Execution
from temporal_plans.client.temporal.workflow_errors import NoSuchWorkflow
from temporal_plans.client.verbs.base import Verbs
from temporal_plans.domain.owners.runs import RunHistory, RunRecord
from temporal_plans.domain.plans.commands import verb_of
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plans import CommandLog, EngineInput, LogEntry, PlanInput, PlanResult

_MEASURED_RUN_LIMIT = 3
"""The last COMPLETE runs from which expectations are computed."""

_EXAMINED_RUN_LIMIT = 12
"""The last runs among which those are searched."""


class HistoryVerbs(Verbs):
    """The verbs for earlier runs."""

    async def history(self, service: str, plan: str = "") -> RunHistory:
        """Return the runs of all plans of a service, or of one plan; of a service that was
        uninstalled as long as Temporal keeps them. Raises ServiceNotFound."""
        try:
            history = await self._query_service(service, "runs", RunHistory)
        except ServiceNotFound:
            history = (await self._ended_service(service)).runs
        if plan:
            history = RunHistory(runs=tuple(run for run in history.runs if run.plan == plan))
        plans = sorted({run.plan for run in history.runs if not run.by})
        logs = await gather_bounded(self._log(f"{service.strip('/')}/{name}") for name in plans)
        log_of = dict(zip(plans, logs, strict=True))
        return history.but(
            runs=tuple(_with_first_command(run, log_of.get(run.plan, ())) for run in history.runs)
        )

    async def service_log(self, service: str) -> CommandLog:
        """Return the commands to a service itself: deployments, pod commands, its uninstall; also
        of a service that was uninstalled, as long as Temporal keeps them.

        Raises ServiceNotFound.
        """
        try:
            return await self._query_service(service, "log", CommandLog)
        except ServiceNotFound:
            return (await self._ended_service(service)).log

    async def _log(self, plan_id: str) -> Sequence[LogEntry]:
        """Return the commands to a plan; none when the query fails."""
        try:
            return (await self._gateway.query(plan_id, "log", CommandLog)).entries
        except (PlansError, NoSuchWorkflow):
            return ()

    async def ended(self, workflow_id: str) -> str:
        """Return how a workflow ended (a value of ``Ended``), ``running`` while it is open, empty
        when the server does not know it."""
        try:
            run = await self._gateway.describe(workflow_id)
        except NoSuchWorkflow:
            return ""
        return run.ended.value if run.ended else "running"

    async def own_history(self, plan_id: str, limit: int = 50) -> RunHistory:
        """Return the runs of a plan that belongs to no service, as far as the server still has
        them. Raises PlanNotFound."""
        found = await self._gateway.runs(plan_id, limit)
        if not found:
            raise PlanNotFound(plan_id)
        runs = await gather_bounded(self._own_run(plan_id, run) for run in reversed(found))
        return RunHistory(
            runs=tuple(run.but(run=number) for number, run in enumerate(runs, start=1))
        )

    async def _own_run(self, plan_id: str, run: Execution) -> RunRecord:
        record = RunRecord(
            plan=plan_id,
            run=0,
            started=run.started,
            ended=run.closed,
            status=Status.IN_PROGRESS if run.ended is None else Status.ERROR,
            run_id=run.run_id,
        )
        if run.ended is Ended.COMPLETED:
            result = await self._result(plan_id, run.run_id)
            record = record.but(status=result.status if result else Status.COMPLETE)
            if result:
                record = record.but(superseded=result.superseded)
            if result and result.view.started:  # the run may have continued as new
                record = record.but(started=result.view.started)
        elif run.ended is not None:
            record = record.but(what=run.ended.value)
        return await self._with_input(plan_id, record)

    async def _with_input(self, plan_id: str, record: RunRecord) -> RunRecord:
        """Add to a record who started the run, why, and with which parameters."""
        try:
            input = await self._gateway.input_of(plan_id, PlanInput, record.run_id)
        except PlansError:
            return record
        given = " ".join(f"{name}={value}" for name, value in input.arguments.items())
        what = ", ".join(part for part in (given, record.what) if part)
        return record.but(what=what, by=input.by, reason=input.reason)

    async def _result(self, plan_id: str, run_id: str) -> PlanResult | None:
        try:
            return await self._gateway.result_of(plan_id, PlanResult, run_id)
        except PlansError:
            return None

    async def expectation(self, plan_id: str) -> Expectation | None:
        """Return the expected duration of a plan, from its last COMPLETE runs.

        None when there are none, when they can't be read, and for standing plans.
        """
        try:
            input = await self._gateway.input_of(plan_id, PlanInput)
            engine = input.engine or EngineInput()
            if engine.standing:
                return None
            service = engine.context.owner if engine.context else ""
            run_ids = await self._complete_runs(plan_id, service)
        except (PlansError, NoSuchWorkflow):
            return None
        results = await gather_bounded(self._result(plan_id, run_id) for run_id in run_ids)
        views = [result.view for result in results if result and result.status is Status.COMPLETE]
        return Expectation(input, seconds_of(views)) if views else None

    async def _complete_runs(self, plan_id: str, service: str) -> list[str]:
        if service:
            history = await self._query_service(service, "runs", RunHistory)
            name = plan_id.rpartition("/")[2]
            ids = [
                run.run_id
                for run in reversed(history.runs)
                if run.plan == name and run.status is Status.COMPLETE and run.run_id and run.ended
            ]
            return ids[:_MEASURED_RUN_LIMIT]
        runs = await self._gateway.runs(plan_id, _EXAMINED_RUN_LIMIT)
        return [run.run_id for run in runs if run.ended is Ended.COMPLETED][:_MEASURED_RUN_LIMIT]


def _with_first_command(run: RunRecord, log: Iterable[LogEntry]) -> RunRecord:
    """Return the record with the command that started a waiting plan, and its time as the start of
    the run. The service does not know it, because the plan itself got the command."""
    if run.by:
        return run
    for entry in log:
        within = run.started <= entry.at and (run.ended is None or entry.at <= run.ended)
        verb = verb_of(entry.verb)
        begins = verb is not None and verb.begins_a_run
        if within and begins and entry.outcome.changed:
            given = " ".join(f"{name}={value}" for name, value in entry.parameters.items())
            what = f"{entry.verb} {given}".strip()
            return run.but(started=entry.at, by=entry.by, reason=entry.reason, what=what)
    return run
