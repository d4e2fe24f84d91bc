"""Verbs about earlier runs of plans, and how long the steps of such runs took."""

from collections.abc import Iterable, Sequence

from temporal_plans.client.errors import PlanNotFound, PlansError
from temporal_plans.client.expectation import Expectation, seconds_of
from temporal_plans.client.gateway import Ended, Execution, NoSuchWorkflow
from temporal_plans.client.together import together
from temporal_plans.client.verbs import Verbs
from temporal_plans.domain.commands import Verb
from temporal_plans.domain.status import Status
from temporal_plans.messages.plan import CommandLog, LogEntry, PlanInput, PlanResult
from temporal_plans.messages.service import RunHistory, RunRecord

RUNS_MEASURED = 3
"""The last COMPLETE runs that expectations are taken from."""

_BEGINS = (Verb.START, Verb.RESTART)

_LOOKED_AT = 12
"""Runs looked at to find those."""


class HistoryVerbs(Verbs):
    """What plans did before."""

    async def history(self, service: str, plan: str = "") -> RunHistory:
        """The runs of all plans of a service, or of one. Raises ServiceNotFound."""
        history = await self._ask_service(service, "runs", RunHistory)
        if plan:
            history = RunHistory(runs=tuple(run for run in history.runs if run.plan == plan))
        unsaid = sorted({run.plan for run in history.runs if not run.by})
        logs = await together(self._log(f"{service.strip('/')}/{name}") for name in unsaid)
        begun = dict(zip(unsaid, logs, strict=True))
        return history.but(
            runs=tuple(_as_begun(run, begun.get(run.plan, ())) for run in history.runs)
        )

    async def service_log(self, service: str) -> CommandLog:
        """What was told to a service itself: deployments, pod commands, its uninstall. Raises
        ServiceNotFound."""
        return await self._ask_service(service, "log", CommandLog)

    async def _log(self, plan_id: str) -> Sequence[LogEntry]:
        """The commands that a plan was given; none when it can't be asked."""
        try:
            return (await self._gateway.query(plan_id, "log", CommandLog)).entries
        except (PlansError, NoSuchWorkflow):
            return ()

    async def ended(self, workflow_id: str) -> str:
        """How a workflow ended in a word, ``running`` while it is open, empty when the server has
        forgotten it."""
        try:
            run = await self._gateway.describe(workflow_id)
        except NoSuchWorkflow:
            return ""
        return run.ended.value if run.ended else "running"

    async def own_history(self, plan_id: str, limit: int = 50) -> RunHistory:
        """The runs of a plan that belongs to no service, as far as the server still knows them.
        Raises PlanNotFound."""
        found = await self._gateway.runs(plan_id, limit)
        if not found:
            raise PlanNotFound(plan_id)
        runs = await together(self._own_run(plan_id, run) for run in reversed(found))
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
            if result and result.view.started:  # it may have continued as new since
                record = record.but(started=result.view.started)
        elif run.ended is not None:
            record = record.but(what=run.ended.value)
        return await self._with_its_beginning(plan_id, record)

    async def _with_its_beginning(self, plan_id: str, record: RunRecord) -> RunRecord:
        """Who began it, why, and with which parameters: what its input says."""
        try:
            input = await self._gateway.input_of(plan_id, PlanInput, record.run_id)
        except PlansError:
            return record
        given = " ".join(f"{name}={value}" for name, value in input.arguments.items())
        what = ", ".join(part for part in (given, record.what) if part)
        begun = [entry for entry in input.log.entries if entry.via == "start"]
        by, reason = (begun[-1].by, begun[-1].reason) if begun else ("", "")
        return record.but(what=what, by=by, reason=reason)

    async def _result(self, plan_id: str, run_id: str) -> PlanResult | None:
        try:
            return await self._gateway.result_of(plan_id, PlanResult, run_id)
        except PlansError:
            return None

    async def expectation(self, plan_id: str) -> Expectation | None:
        """What is to be expected of a plan, from its last COMPLETE runs. None when there are none,
        when they can't be had, and for plans that stay for ever: it is a courtesy."""
        try:
            input = await self._gateway.input_of(plan_id, PlanInput)
            if input.standing:
                return None
            service = input.context.service if input.context else ""
            run_ids = await self._complete_runs(plan_id, service)
        except (PlansError, NoSuchWorkflow):
            return None
        results = await together(self._result(plan_id, run_id) for run_id in run_ids)
        views = [one.view for one in results if one and one.status is Status.COMPLETE]
        return Expectation(input, seconds_of(views)) if views else None

    async def _complete_runs(self, plan_id: str, service: str) -> list[str]:
        if service:
            history = await self._ask_service(service, "runs", RunHistory)
            name = plan_id.rpartition("/")[2]
            ids = [
                run.run_id
                for run in reversed(history.runs)
                if run.plan == name and run.status is Status.COMPLETE and run.run_id and run.ended
            ]
            return ids[:RUNS_MEASURED]
        runs = await self._gateway.runs(plan_id, _LOOKED_AT)
        return [run.run_id for run in runs if run.ended is Ended.COMPLETED][:RUNS_MEASURED]


def _as_begun(run: RunRecord, log: Iterable[LogEntry]) -> RunRecord:
    """A plan that waits is begun by a command to itself: its service does not hear by whom. What
    it took is counted from there."""
    if run.by:
        return run
    for entry in log:
        within = run.started <= entry.at and (run.ended is None or entry.at <= run.ended)
        if within and entry.verb in _BEGINS and entry.outcome.changed:
            given = " ".join(f"{name}={value}" for name, value in entry.parameters.items())
            what = f"{entry.verb} {given}".strip()
            return run.but(started=entry.at, by=entry.by, reason=entry.reason, what=what)
    return run
