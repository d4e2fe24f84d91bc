"""Verbs for plans: start, show, watch, command."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from pydantic import BaseModel

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import (
    PlanNotFound,
    PlansError,
    Refused,
    Unreadable,
    WorkerUnreachable,
)
from temporal_plans.client.reading.operator_dialect import status_body
from temporal_plans.client.reading.operator_status import newest_runs
from temporal_plans.client.reading.paused import paused_pods, with_paused
from temporal_plans.client.reading.plan_run import PlanRun, WatchProblem
from temporal_plans.client.reading.standstill import stuck_around
from temporal_plans.client.reading.watching import UNREACHABLE_TIMEOUT, watch
from temporal_plans.client.temporal.executions import Ended, Execution
from temporal_plans.client.temporal.workflow_errors import (
    EndedBeforeAnswer,
    NoSuchWorkflow,
    WorkflowIsClosed,
    WorkflowIsEnding,
    WorkflowIsOpen,
)
from temporal_plans.client.verbs.base import LIST_LIMIT, RUNNING
from temporal_plans.client.verbs.closed import (
    command_closed,
    package_of,
    service_of,
    start_in_service,
)
from temporal_plans.client.verbs.history import HistoryVerbs
from temporal_plans.client.verbs.packages import PackageVerbs, found_in
from temporal_plans.client.verbs.services import ServiceVerbs
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.values.refusal import Code, Refusal, SpecError
from temporal_plans.messages.owners import OWNERS_QUERY
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import CommandLog, LogEntry, PlanInput, PlanResult

_COMMAND_DELAYS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds before each attempt to give a command to a plan that is ending or starting."""

Model = TypeVar("Model", bound=BaseModel)


class PlanVerbs(HistoryVerbs, ServiceVerbs, PackageVerbs):
    """Plans by their workflow id: ``<service>/<plan>``, or the result of ``run``."""

    async def run(
        self, plan: PlanSpec, *, plan_id: str = "", arguments: Mapping[str, str] | None = None,
        by: str = "", reason: str = "",
    ) -> str:  # fmt: skip
        """Start a plan that belongs to no service, and return its workflow id.

        ``plan_id`` is that id, by default the plan's name. ``by`` and ``reason`` are the first
        entry of its log. Strategies and step kinds that developers register are checked by the
        worker, which alone knows them. Raises SpecError, and Refused when a plan with this id is
        running.
        """
        _, faults = check_arguments(plan.parameters, arguments or {})
        if problems := (*plan_problems(plan, of_service=False), *faults):
            raise SpecError(problems)
        plan_id = plan_id or plan.name
        fields = {name: getattr(plan, name) for name in PlanSpec.model_fields}
        request = PlanInput(**fields, arguments=dict(arguments or {}), by=by, reason=reason)
        try:
            await self._gateway.start("Plan", plan_id, request, summary=plan.description)
        except WorkflowIsOpen:
            raise Refused.of(
                Code.NAME_TAKEN,
                f"a plan with the id {plan_id!r} is running",
                fix=f"show it with `temporal plan show {plan_id}`, or choose another --id",
            ) from None
        return plan_id

    async def own_plans(self, limit: int = 100, *, scheduled: bool = True) -> list[Execution]:
        """Return the plans that belong to no service: the open ones first, then the newest.
        Without ``scheduled`` the ended ones that a Schedule started are left out."""
        services = await self._gateway.list(OWNERS_QUERY, LIST_LIMIT)
        names = {run.id.removeprefix("service/") for run in services}
        query = "WorkflowType = 'Plan' AND ExecutionStatus != 'ContinuedAsNew'"
        if not scheduled:
            query += f" AND (TemporalScheduledById IS NULL OR {RUNNING})"
        plans = await self._gateway.list(query, LIST_LIMIT)
        return [run for run in plans if run.id.rpartition("/")[0] not in names][:limit]

    async def exists(self, plan_id: str) -> bool:
        """Return whether a workflow with this id exists, open or closed."""
        try:
            await self._gateway.describe(plan_id)
        except NoSuchWorkflow:
            return False
        return True

    async def show(self, plan_id: str) -> PlanRun:
        """Return a plan's tree, from an open or a closed workflow.

        Raises PlanNotFound, Unreadable.
        """
        try:
            return PlanRun(await self._query_plan(plan_id, "status", PlanView, open_only=True))
        except WorkflowIsClosed as closed:
            return await self._show_closed(plan_id, closed.ended)

    async def displayed(self, run: PlanRun) -> PlanRun:
        """Return the plan with the displayed statuses of its steps: PAUSED and PAUSING for paused
        pods. A service that does not answer leaves the statuses as they are."""
        view = run.view
        if not view.service or not any(
            step.kind == PodWork.name() for phase in view.phases for step in phase.steps
        ):
            return run
        try:
            paused = paused_pods(await self.pods(view.service))
        except PlansError:
            return run
        return replace(run, view=with_paused(view, paused)) if paused else run

    async def show_all(self, plan_ids: Iterable[str]) -> dict[str, PlanRun | PlansError]:
        """Return the trees of several plans by id, or for each that can't be read its error."""

        async def shown(plan_id: str) -> PlanRun | PlansError:
            try:
                return await self.show(plan_id)
            except PlansError as error:
                return error

        ids = list(plan_ids)
        return dict(zip(ids, await gather_bounded(map(shown, ids)), strict=True))

    async def operator_status(self, service: str) -> dict[str, Any]:
        """Return the status document of an installed package in the form that its first users know
        (``client.reading.operator_dialect``). Raises Refused for a service of pods."""
        if await self.content_of(service) == "service":
            raise Refused.of(
                Code.NOT_APPLICABLE,
                f"service {service} has pods; only a package has this status document",
                fix=f"show it with `temporal plan show -s {service} --json`",
            )
        status = await self.instance(service)
        kept = await self.package_configurations(service)
        ran = [record.workflow_id for record in status.plans if record.run]
        runs = newest_runs(status, await self.show_all(ran))
        removal = next((one for one in status.plans if one.name == CLEANUP), None)
        return status_body(
            found_in(kept).installation,
            runs,
            status.readiness,
            name=service,
            deleting=removal.changed if removal and status.uninstalling else None,
        )

    def watch(
        self, plan_id: str, *, timeout: timedelta = UNREACHABLE_TIMEOUT
    ) -> AsyncIterator[PlanRun | WatchProblem]:
        """Yield the tree whenever it changes, until the plan is at rest.

        Yields a WatchProblem while server or worker do not answer, and when a workflow of the plan
        stands still because its workflow task fails; raises
        ServerUnreachableError or WorkerUnreachable when that lasts for ``timeout``.
        """
        return watch(lambda: self.show(plan_id), stuck=lambda: self.stuck(plan_id), timeout=timeout)

    async def command(self, plan_id: str, verb: Verb, command: Command) -> Outcome:
        """Give a command to a plan. Raises PlanNotFound, and Refused with the plan's reason.

        A plan that has ended can be started or restarted as a whole: a service's plan by its
        Service, another plan by a new run with the same input. The start of a package's plan is
        always a new run.
        """
        for delay in _COMMAND_DELAYS:
            await asyncio.sleep(delay)
            with suppress(WorkflowIsEnding, WorkflowIsOpen):
                return await self._command(plan_id, verb, command)
        problem = f"plan {plan_id!r} is being started and ended by other clients"
        raise Refused.of(Code.UNAVAILABLE, problem, fix="retry")

    async def _command(self, plan_id: str, verb: Verb, command: Command) -> Outcome:
        """Raises WorkflowIsEnding or WorkflowIsOpen when the plan ended, or a new run of it was
        started, between request and answer."""
        if verb is Verb.START and (found := await package_of(self._gateway, plan_id)) is not None:
            return await start_in_service(self._gateway, found[0], found[1].name, verb, command)
        try:
            return await self._gateway.update(plan_id, verb.value, command, Outcome)
        except EndedBeforeAnswer:
            return Outcome(
                result=Result.UNDER_WAY,
                message=f"{verb.value} was accepted, and the plan has ended",
            )
        except NoSuchWorkflow:
            return await self._command_unstarted(plan_id, verb, command)
        except WorkflowIsClosed as closed:
            ended = closed.ended or (await self._gateway.describe(plan_id)).ended
        if ended is None:
            raise WorkflowIsOpen
        return await command_closed(self._gateway, plan_id, ended, verb, command)

    async def log(self, plan_id: str) -> CommandLog:
        """Return the commands that the plan was given. Raises PlanNotFound.

        A plan that could not start may have no log to query: its failure is the only entry.
        """
        try:
            return await self._query_plan(plan_id, "log", CommandLog)
        except (Refused, WorkerUnreachable):
            run = await self._gateway.describe(plan_id)
            if run.ended is not Ended.FAILED or not (why := await self._why_failed(plan_id)):
                raise
            outcome = Outcome.refusing(Refusal.of(Code.INVALID, why))
            entry = LogEntry(at=run.started, verb=Verb.START, via="start", outcome=outcome)
            return CommandLog(entries=(entry,))

    async def stuck(self, *plan_ids: str) -> Sequence[StuckWorkflow]:
        """Return the workflows of plans, of their phases and steps, and of the services that own
        them, whose workflow task fails: Temporal retries it, and they do not proceed."""
        return await stuck_around(self._gateway, plan_ids)

    async def _query_plan(
        self,
        plan_id: str,
        query: str,
        result: type[Model],
        argument: BaseModel | None = None,
        *,
        open_only: bool = False,
    ) -> Model:
        try:
            return await self._gateway.query(plan_id, query, result, argument, open_only=open_only)
        except NoSuchWorkflow:
            raise await self._no_such_plan(plan_id) from None

    async def _show_closed(self, plan_id: str, ended: Ended | None) -> PlanRun:
        if ended is Ended.COMPLETED:
            result = await self._gateway.result_of(plan_id, PlanResult)
            return PlanRun(result.view, ended, superseded=result.superseded)
        why = await self._why_failed(plan_id) if ended is Ended.FAILED else ""
        try:
            return PlanRun(await self._query_plan(plan_id, "status", PlanView), ended, why)
        except (Refused, WorkerUnreachable) as error:
            end = "has ended" if ended is None else ended.clause
            text = why or f"its tree can't be read ({error})"
            raise Unreadable(f"plan {plan_id!r} {end}: {text}") from error

    async def _why_failed(self, plan_id: str) -> str:
        try:
            await self._gateway.result_of(plan_id, PlanResult)
        except Unreadable as failed:
            return failed.why or str(failed)
        return ""

    async def _command_unstarted(self, plan_id: str, verb: Verb, command: Command) -> Outcome:
        """Give a command to a service's plan whose workflow was never started."""
        if (found := await service_of(self._gateway, plan_id)) is None:
            raise await self._no_such_plan(plan_id)
        if not verb.begins_a_run:
            problem = f"plan {plan_id!r} was never started"
            raise Refused.of(Code.NOT_RUNNING, problem, fix="start it first")
        return await start_in_service(self._gateway, found[0], found[1].name, verb, command)

    async def _no_such_plan(self, plan_id: str) -> PlansError:
        service, _, plan = plan_id.rpartition("/")
        if service and service in await self.services():
            known = {record.name: record for record in await self.plans(service)}
            if plan in known:
                return Unreadable(f"plan {plan_id!r} was never started; start it first")
            return PlanNotFound(plan, known, service=service)
        return PlanNotFound(plan_id, [run.id for run in await self.own_plans()])
