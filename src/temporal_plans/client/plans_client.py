"""``PlansClient``: all operations on services, plans and the cluster, with typed results.

The command line and every other front end talk to Temporal only through this class. The verbs for
services, run history and schedules are in modules of their own; those for plans and for the cluster
are here.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel
from temporalio.client import Client

from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.client.errors import (
    PlanNotFound,
    PlansError,
    PoolNotFound,
    Refused,
    TaskNotFound,
    Unreadable,
    WorkerUnreachable,
)
from temporal_plans.client.reading import task_logs
from temporal_plans.client.reading.audit import Audit
from temporal_plans.client.reading.diagnosis import Diagnosis, findings
from temporal_plans.client.reading.explaining import needs_offers, why_cut_short, with_refusals
from temporal_plans.client.reading.operator_dialect import status_body
from temporal_plans.client.reading.operator_status import newest_runs
from temporal_plans.client.reading.package_diagnosis import package_findings
from temporal_plans.client.reading.paused import paused_pods, with_paused
from temporal_plans.client.reading.plan_run import PlanRun, WatchProblem
from temporal_plans.client.reading.remedies import (
    has_failed,
    places_of,
    with_logs,
    with_lost_agents,
    with_rollback,
)
from temporal_plans.client.reading.standstill import stuck_around, with_silent_pools, with_stuck
from temporal_plans.client.reading.steps_at_work import needs_agents, with_agents, with_work
from temporal_plans.client.reading.task_logs import Stream, TaskAt
from temporal_plans.client.reading.watching import UNREACHABLE_TIMEOUT, watch
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.temporal.gateway import (
    Ended,
    EndedBeforeAnswer,
    Execution,
    Gateway,
    NoSuchWorkflow,
    TemporalGateway,
    WorkflowIsClosed,
    WorkflowIsEnding,
    WorkflowIsOpen,
)
from temporal_plans.client.verbs.audits import AuditVerbs
from temporal_plans.client.verbs.base import LIST_LIMIT, RUNNING
from temporal_plans.client.verbs.closed import command_closed, service_of, start_in_service
from temporal_plans.client.verbs.contents import ContentVerbs
from temporal_plans.client.verbs.fleets import FleetVerbs
from temporal_plans.client.verbs.history import HistoryVerbs
from temporal_plans.client.verbs.packages import found_in
from temporal_plans.client.verbs.schedules import ScheduleVerbs
from temporal_plans.client.verbs.takeover import TakeoverVerbs
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.commands import Command, Outcome, Result, Verb
from temporal_plans.domain.plans.explain import ElementQuery, Explanations, PendingWork
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.stuck import StuckWorkflow
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.domain.values.refusal import Code, Refusal, SpecError
from temporal_plans.messages.addresses import pool_id, service_id
from temporal_plans.messages.owners import OWNERS_QUERY, PlanRecord
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import CommandLog, LogEntry, PlanInput, PlanResult
from temporal_plans.messages.pools import AgentView, DeregisterRequest, DeregisterResult, PoolStatus

Model = TypeVar("Model", bound=BaseModel)

_COMMAND_DELAYS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds before each attempt to give a command to a plan that is ending or starting."""


class PlansClient(AuditVerbs, ContentVerbs, FleetVerbs, HistoryVerbs, ScheduleVerbs, TakeoverVerbs):
    """All verbs, over a connected client (``connect``).

    Every verb may raise ``ServerUnreachableError``, and ``WorkerUnreachable`` when a workflow must
    answer. A plan is addressed by its workflow id: ``<service>/<plan>``, or the result of ``run``.
    """

    def __init__(self, client: Client | None = None, *, gateway: Gateway | None = None) -> None:
        """Use a client or, in tests, another gateway."""
        if gateway is None:
            if client is None:
                raise TypeError("PlansClient needs a client or a gateway")
            gateway = TemporalGateway(client)
        super().__init__(gateway)

    # --- plans --------------------------------------------------------------------------------

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
        Service, another plan by a new run with the same input.
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

    async def explain(self, plan_id: str, phase: str = "", step: str = "") -> Explanations:
        """Explain why elements make no progress, with the current refusals of the pools and the
        state of the work that waits for workers.

        Raises PlanNotFound, and Refused for an unknown element.
        """
        query = ElementQuery(phase=phase, step=step)
        try:
            explanations = await self._query_plan(
                plan_id, "explain", Explanations, query, open_only=True
            )
        except WorkflowIsClosed as closed:
            run = await self._show_closed(plan_id, closed.ended)
            if run.cut_short:
                return why_cut_short(run, query)
            return await self._query_plan(plan_id, "explain", Explanations, query)
        explanations = await with_work(self._gateway, plan_id, explanations)
        stuck = await self.stuck(plan_id)
        service, _, plan = plan_id.rpartition("/")
        explanations = await self._with_commands(explanations, service, plan)
        if needs_offers(explanations) or needs_agents(explanations):
            explanations = await self._with_pools(plan_id, explanations)
        return with_stuck(explanations, query, stuck)

    async def _with_pools(self, plan_id: str, explanations: Explanations) -> Explanations:
        answers = await self.show_pools()
        pools = [one for one in answers.values() if isinstance(one, PoolStatus)]
        waiting = [requirement for pool in pools for requirement in pool.waiting]
        agents = [agent for pool in pools for agent in pool.agents]
        explained = with_agents(with_refusals(explanations, plan_id, waiting), agents)
        if service := plan_id.rpartition("/")[0]:
            with suppress(PlansError):  # a plan that only looks like one of a service
                pods = await self.pods(service)
                explained = with_lost_agents(explained, service, pods, places_of(pools))
        return with_silent_pools(explained, answers) if needs_offers(explained) else explained

    async def _with_commands(
        self, explanations: Explanations, service: str, plan: str
    ) -> Explanations:
        """Add what helps steps whose tasks fail: their output, and the configuration before."""
        if not service or not any(map(has_failed, explanations.explanations)):
            return explanations
        explanations = with_logs(explanations, service)
        with suppress(PlansError):
            kept = await self.configurations(service)
            before = [one for one in kept.configurations if one.id != kept.target]
            return with_rollback(explanations, service, plan) if before else explanations
        return explanations

    async def explain_service(self, service: str) -> Diagnosis:
        """Explain what is wrong with a service: its plans, pods, agents, configuration, code, and
        the workflow tasks of all of them. Raises ServiceNotFound, StandsStill."""
        service = service.strip("/")
        if await self.content_of(service) == "package":
            return await self._explain_package(service)
        status = await self.service(service)
        pods, log, pools = await asyncio.gather(
            self.pods(service), self.service_log(service), self.show_pools()
        )
        answering = [one for one in pools.values() if isinstance(one, PoolStatus)]
        stuck = await self.stuck(*(record.workflow_id for record in status.plans))
        own = service_id(service)
        found = findings(
            status,
            pods=pods,
            log=log,
            agents=places_of(answering),
            pools=pools,
            stuck=[one for one in stuck if not one.element[0]],
            work=(await self._pending_work(own)),
            now=datetime.now(UTC),
        )
        plans, silent = await self._explain_open(status.plans)
        return Diagnosis(
            service=service, findings=found, plans=plans, silent=silent,
            tasks=status.tasks, running=status.running,
        )  # fmt: skip

    async def _explain_package(self, service: str) -> Diagnosis:
        status = await self.instance(service)
        log = await self.service_log(service)
        stuck = await self.stuck(*(record.workflow_id for record in status.plans))
        found = package_findings(
            status,
            log=log,
            stuck=[one for one in stuck if not one.element[0]],
            work=await self._pending_work(service_id(service)),
            now=datetime.now(UTC),
        )
        plans, silent = await self._explain_open(status.plans)
        return Diagnosis(
            service=service, findings=found, plans=plans, silent=silent, objects=status.objects
        )

    async def _pending_work(self, workflow_id: str) -> Sequence[PendingWork]:
        try:
            return (await self._gateway.pending_work([workflow_id])).get(workflow_id, ())
        except (NoSuchWorkflow, Refused, ServerUnreachableError):
            return ()

    async def _explain_open(
        self, records: Iterable[PlanRecord]
    ) -> tuple[dict[str, Explanations], dict[str, str]]:
        """Explain the plans that are not complete and were started, and standing plans that are
        interrupted; return the errors of plans that do not answer beside them."""
        plans: dict[str, Explanations] = {}
        silent: dict[str, str] = {}
        for record in records:
            idle = record.status is Status.COMPLETE
            if record.run == 0 or (idle and not record.open):
                continue
            try:
                explained = await self.explain(record.workflow_id)
                if not idle or any(one.remedy for one in explained.explanations):
                    plans[record.name] = explained
            except PlansError as error:
                silent[record.name] = str(error)
        return plans, silent

    async def stuck(self, *plan_ids: str) -> Sequence[StuckWorkflow]:
        """Return the workflows of plans, of their phases and steps, and of the services that own
        them, whose workflow task fails: Temporal retries it, and they do not proceed."""
        return await stuck_around(self._gateway, plan_ids)

    # --- agents and tasks ---------------------------------------------------------------------

    async def pools(self) -> list[str]:
        """Return the names of all pools."""
        running = await self._gateway.list(f"WorkflowType = 'Pool' AND {RUNNING}", LIST_LIMIT)
        return sorted(run.id.removeprefix("pool/") for run in running)

    async def pool(self, name: str = "default") -> PoolStatus:
        """Return a pool's agents, reservations and waiting requirements. Raises PoolNotFound."""
        try:
            return await self._gateway.query(pool_id(name), "status", PoolStatus, open_only=True)
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise PoolNotFound(name, await self.pools()) from None

    async def show_pools(self) -> dict[str, PoolStatus | PlansError]:
        """Return all pools by name; for a pool that does not answer, the error."""

        async def shown(name: str) -> PoolStatus | PlansError:
            try:
                return await self.pool(name)
            except PlansError as error:
                return error

        names = await self.pools()
        return dict(zip(names, await gather_bounded(map(shown, names)), strict=True))

    async def silent_agents(self) -> dict[str, str]:
        """Return the states of all agents that are not ALIVE, by id."""
        agents = await self._agents()
        return {
            view.info.id: view.state.value for view in agents if view.state is not AgentState.ALIVE
        }

    async def remove_agent(
        self, agent: str, *, pool: str = "default", force: bool = False
    ) -> DeregisterResult:
        """Remove an agent from its pool permanently.

        ``force`` removes its reservations as well: their tasks are GONE_BY_OPERATOR, and their pods
        are replaced. Raises PoolNotFound; Refused for an unknown agent, and without ``force`` for
        an agent with reservations.
        """
        request = DeregisterRequest(agent=agent, force=force)
        try:
            return await self._gateway.update(
                pool_id(pool), "deregister", request, DeregisterResult
            )
        except (NoSuchWorkflow, WorkflowIsClosed, EndedBeforeAnswer):
            raise PoolNotFound(pool, await self.pools()) from None

    async def audit(self) -> Audit:
        """Compare what all agents run with what all services know: they differ after a restore of
        Temporal from a backup."""
        return await self.audit_agents(await self._agents())

    async def end_task(self, task_id: str, *, reason: str = "") -> TaskStatus:
        """End a task that runs on an agent and that no service knows, and return its last status.
        Raises TaskNotFound; Refused when its service knows it or does not answer."""
        return await self.end_unknown(task_id, await self._agents(), reason=reason)

    async def find_task(self, text: str, *, service: str = "", agent: str = "") -> TaskAt:
        """Find a task by id or name, in one service or all, and the agent that has its files.

        A name finds the newest launch; older launches are found by id. ``agent`` skips the search:
        the task is expected there. Raises TaskNotFound, Ambiguous, AgentNotFound.
        """
        if agent:
            return task_logs.task_on_agent(text, agent, await self._agents())
        services = [service] if service else await self.services()
        records = [
            task for tasks in await gather_bounded(map(self.tasks, services)) for task in tasks
        ]
        if (found := task_logs.find_task(text, records)) is not None:
            return found
        if "__" in text:
            agents = await self._agents()
            if (found := await task_logs.find_on_agents(self._gateway, text, agents)) is not None:
                return found
        raise task_logs.task_not_found(text, records)

    async def find_task_of_step(self, plan_id: str, path: str) -> TaskAt:
        """Find the newest task of the step ``phase/step``, which must run a command.

        Raises TaskNotFound, PlanNotFound.
        """
        task = task_logs.task_of_step((await self.show(plan_id)).view, path)
        agents = await self._agents()
        if (found := await task_logs.find_on_agents(self._gateway, task, agents)) is None:
            raise TaskNotFound(task)
        return found

    def read_log(
        self, task: TaskAt, stream: Stream = "stdout", *, tail: int | None = None,
        follow: bool = False,
    ) -> AsyncIterator[str]:  # fmt: skip
        """Yield a task's output in chunks: all of it or the last ``tail`` lines; with ``follow``
        also new output, until the task has ended. Raises AgentUnreachable, Refused."""
        return task_logs.read_output(self._gateway, task, stream, tail=tail, follow=follow)

    # --- shared by several verbs --------------------------------------------------------------

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

    async def _all_pools(self) -> Sequence[PoolStatus]:
        """Return the pools that answer: a pool that does not must not hide the others."""
        answers = (await self.show_pools()).values()
        return [one for one in answers if isinstance(one, PoolStatus)]

    async def _agents(self) -> Sequence[AgentView]:
        return [agent for pool in await self._all_pools() for agent in pool.agents]
