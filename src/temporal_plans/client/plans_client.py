"""What people and programs can do with services and plans, as one class of typed verbs.

The command line and every other front end use this and nothing else to talk to Temporal. Verbs
about services, earlier runs and schedules are in modules of their own; here are those about plans
and about the cluster.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pydantic import BaseModel
from temporalio.client import Client

from temporal_plans.client import task_logs
from temporal_plans.client.closed import command_closed, service_of, start_in_service
from temporal_plans.client.errors import (
    PlanNotFound,
    PlansError,
    PoolNotFound,
    Refused,
    TaskNotFound,
    Unreadable,
    WorkerUnreachable,
)
from temporal_plans.client.explaining import needs_offers, why_cut_short, with_refusals
from temporal_plans.client.gateway import (
    Ended,
    EndedMeanwhile,
    Execution,
    Gateway,
    NoSuchWorkflow,
    TemporalGateway,
    WorkflowIsClosed,
    WorkflowIsEnding,
    WorkflowIsOpen,
)
from temporal_plans.client.history import HistoryVerbs
from temporal_plans.client.plan_run import PlanRun, Trouble
from temporal_plans.client.schedule_verbs import ScheduleVerbs
from temporal_plans.client.services import ServiceVerbs
from temporal_plans.client.steps_at_work import needs_agents, with_agents, with_work
from temporal_plans.client.task_logs import Stream, TaskAt
from temporal_plans.client.together import together
from temporal_plans.client.verbs import MANY, RUNNING
from temporal_plans.client.watching import PATIENCE, watch
from temporal_plans.domain.cluster import AgentState
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.explain import ElementQuery, Explanations
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_check import problems as plan_problems
from temporal_plans.messages.cluster import (
    DeregisterRequest,
    DeregisterResult,
    PoolStatus,
    pool_id,
)
from temporal_plans.messages.plan import (
    CommandLog,
    LogEntry,
    PlanInput,
    PlanResult,
    PlanView,
)

Model = TypeVar("Model", bound=BaseModel)

_PAUSES = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds before a command is given, and given again to a plan that is ending or being begun."""


class PlansClient(ServiceVerbs, HistoryVerbs, ScheduleVerbs):
    """The verbs, over a connected client (``client.connection.connect``).

    Every verb may raise ``ServerUnreachableError``, and ``WorkerUnreachable`` when a workflow must
    answer. Plans are addressed by workflow id: ``<service>/<plan>``, or what ``run`` was given.
    """

    def __init__(self, client: Client | None = None, *, gateway: Gateway | None = None) -> None:
        """From a client, or for tests from another way to answer the same questions."""
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
        """Start a plan that belongs to no service; its workflow id, by default the plan's name.
        ``by`` and ``reason`` are the first line of its log.

        Strategies and step kinds that users register are known to the worker only, which answers
        for them. Raises SpecError, and Refused when a plan of that id runs.
        """
        _, faults = check_arguments(plan.parameters, arguments or {})
        if problems := (*plan_problems(plan, of_service=False), *faults):
            raise SpecError(problems)
        plan_id = plan_id or plan.name
        fields = {name: getattr(plan, name) for name in PlanSpec.model_fields}
        request = PlanInput(**fields, arguments=dict(arguments or {}), log=_begun(plan, by, reason))
        try:
            await self._gateway.start("Plan", plan_id, request, summary=plan.description)
        except WorkflowIsOpen:
            raise Refused(
                f"a plan with the id {plan_id!r} is running; see it with `temporal plan show "
                f"{plan_id}`, or give this one another --id"
            ) from None
        return plan_id

    async def own_plans(self, limit: int = 100) -> list[Execution]:
        """Plans that belong to no service, open ones first, then the newest."""
        services = await self._gateway.list("WorkflowType = 'Service'", MANY)
        names = {run.id.removeprefix("service/") for run in services}
        plans = await self._gateway.list(
            "WorkflowType = 'Plan' AND ExecutionStatus != 'ContinuedAsNew'", MANY
        )
        return [run for run in plans if run.id.rpartition("/")[0] not in names][:limit]

    async def exists(self, plan_id: str) -> bool:
        """Whether there is a workflow of this id, open or closed."""
        try:
            await self._gateway.describe(plan_id)
        except NoSuchWorkflow:
            return False
        return True

    async def show(self, plan_id: str) -> PlanRun:
        """A plan's tree, of an open or a closed workflow. Raises PlanNotFound, Unreadable."""
        try:
            return PlanRun(await self._ask_plan(plan_id, "status", PlanView, open_only=True))
        except WorkflowIsClosed as closed:
            return await self._show_closed(plan_id, closed.ended)

    async def show_all(self, plan_ids: Iterable[str]) -> dict[str, PlanRun | PlansError]:
        """The trees of several plans; for one that can't be shown, why not."""

        async def shown(plan_id: str) -> PlanRun | PlansError:
            try:
                return await self.show(plan_id)
            except PlansError as error:
                return error

        ids = list(plan_ids)
        return dict(zip(ids, await together(map(shown, ids)), strict=True))

    def watch(
        self, plan_id: str, *, patience: timedelta = PATIENCE
    ) -> AsyncIterator[PlanRun | Trouble]:
        """The tree as it changes, until nothing more will happen; see ``client.watching``."""
        return watch(lambda: self.show(plan_id), patience=patience)

    async def command(self, plan_id: str, verb: Verb, command: Command) -> Outcome:
        """Do what an operator wants done. Raises PlanNotFound, and Refused with the plan's reason.

        A plan that has ended can be started or restarted as a whole: a service's plan by its
        Service, another by a new run with the same input.
        """
        for pause in _PAUSES:
            await asyncio.sleep(pause)
            with suppress(WorkflowIsEnding, WorkflowIsOpen):
                return await self._command(plan_id, verb, command)
        raise Refused(f"plan {plan_id!r} is being started and ended by others; try again")

    async def _command(self, plan_id: str, verb: Verb, command: Command) -> Outcome:
        """Raises WorkflowIsEnding or WorkflowIsOpen when it has ended, or was begun anew, between
        question and answer."""
        try:
            return await self._gateway.update(plan_id, verb.value, command, Outcome)
        except EndedMeanwhile:
            return Outcome(code=202, message=f"{verb.value} was taken, and the plan has ended")
        except NoSuchWorkflow:
            return await self._command_unstarted(plan_id, verb, command)
        except WorkflowIsClosed as closed:
            ended = closed.ended or (await self._gateway.describe(plan_id)).ended
        if ended is None:
            raise WorkflowIsOpen
        return await command_closed(self._gateway, plan_id, ended, verb, command)

    async def log(self, plan_id: str) -> CommandLog:
        """The commands that the plan was given. Raises PlanNotFound."""
        return await self._ask_plan(plan_id, "log", CommandLog)

    async def explain(self, plan_id: str, phase: str = "", step: str = "") -> Explanations:
        """Why elements are not moving, with today's reasons of the pools, and what workers make of
        what they were given. Raises PlanNotFound, and Refused for an unknown element."""
        query = ElementQuery(phase=phase, step=step)
        try:
            explanations = await self._ask_plan(
                plan_id, "explain", Explanations, query, open_only=True
            )
        except WorkflowIsClosed as closed:
            run = await self._show_closed(plan_id, closed.ended)
            if run.cut_short:
                return why_cut_short(run, query)
            return await self._ask_plan(plan_id, "explain", Explanations, query)
        explanations = await with_work(self._gateway, plan_id, explanations)
        if not (needs_offers(explanations) or needs_agents(explanations)):
            return explanations
        pools = await together(self.pool(name) for name in await self.pools())
        waiting = [one for pool in pools for one in pool.waiting]
        agents = {one.info.id: one.state for pool in pools for one in pool.agents}
        return with_agents(with_refusals(explanations, plan_id, waiting), agents)

    # --- agents and tasks ---------------------------------------------------------------------

    async def pools(self) -> list[str]:
        """The names of the pools that there are."""
        running = await self._gateway.list(f"WorkflowType = 'Pool' AND {RUNNING}", MANY)
        return sorted(run.id.removeprefix("pool/") for run in running)

    async def pool(self, name: str = "default") -> PoolStatus:
        """A pool's agents, reservations and waiting requirements. Raises PoolNotFound."""
        try:
            return await self._gateway.query(pool_id(name), "status", PoolStatus, open_only=True)
        except (NoSuchWorkflow, WorkflowIsClosed):
            raise PoolNotFound(name, await self.pools()) from None

    async def remove_agent(
        self, agent: str, *, pool: str = "default", force: bool = False
    ) -> DeregisterResult:
        """Take an agent out of its pool for good. With ``force`` what is reserved there is dropped:
        its tasks are GONE_BY_OPERATOR, and their pods are replaced. Raises PoolNotFound; Refused
        for an unknown agent, and without ``force`` for one that holds reservations."""
        request = DeregisterRequest(agent=agent, force=force)
        try:
            return await self._gateway.update(
                pool_id(pool), "deregister", request, DeregisterResult
            )
        except (NoSuchWorkflow, WorkflowIsClosed, EndedMeanwhile):
            raise PoolNotFound(pool, await self.pools()) from None

    async def find_task(self, text: str, *, service: str = "", agent: str = "") -> TaskAt:
        """The task of an id or a name, in one service or all, and the agent that has its files.

        A name means the newest launch; older ones are found by id. Raises TaskNotFound, Ambiguous.
        """
        if agent:
            return TaskAt(text, agent)
        services = [service] if service else await self.services()
        records = [task for tasks in await together(map(self.tasks, services)) for task in tasks]
        if (found := task_logs.find_task(text, records)) is not None:
            return found
        if "__" in text:
            agents = await self._alive_agents()
            if (found := await task_logs.find_by_agents(self._gateway, text, agents)) is not None:
                return found
        raise task_logs.not_found(text, records)

    async def find_task_of_step(self, plan_id: str, path: str) -> TaskAt:
        """The newest task of the step ``phase/step``, which runs a command. Raises TaskNotFound,
        PlanNotFound."""
        task = task_logs.task_of_step((await self.show(plan_id)).view, path)
        agents = await self._alive_agents()
        if (found := await task_logs.find_by_agents(self._gateway, task, agents)) is None:
            raise TaskNotFound(task)
        return found

    def read_log(
        self, task: TaskAt, stream: Stream = "stdout", *, tail: int | None = None,
        follow: bool = False,
    ) -> AsyncIterator[str]:  # fmt: skip
        """A task's output piece by piece; see ``task_logs.read_all``."""
        return task_logs.read_all(self._gateway, task, stream, tail=tail, follow=follow)

    # --- what several verbs share -------------------------------------------------------------

    async def _ask_plan(
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
            return PlanRun(await self._ask_plan(plan_id, "status", PlanView), ended, why)
        except (Refused, WorkerUnreachable) as error:
            how = "has ended" if ended is None else f"was {ended.value}" if not why else "failed"
            text = why or f"its tree can't be had: {error}"
            raise Unreadable(f"plan {plan_id!r} {how}: {text}") from error

    async def _why_failed(self, plan_id: str) -> str:
        try:
            await self._gateway.result_of(plan_id, PlanResult)
        except Unreadable as failed:
            return str(failed)
        return ""

    async def _command_unstarted(self, plan_id: str, verb: Verb, command: Command) -> Outcome:
        """A service may know plans whose workflows were never started."""
        if (found := await service_of(self._gateway, plan_id)) is None:
            raise await self._no_such_plan(plan_id)
        if verb not in (Verb.START, Verb.RESTART):
            raise Refused(f"plan {plan_id!r} was never started; `start` begins it")
        return await start_in_service(self._gateway, found[0], found[1].name, verb, command)

    async def _no_such_plan(self, plan_id: str) -> PlansError:
        service, _, plan = plan_id.rpartition("/")
        if service and service in await self.services():
            known = {record.name: record for record in await self.plans(service)}
            if plan in known:
                return Unreadable(f"plan {plan_id!r} was never started; `start` begins it")
            return PlanNotFound(plan, known, service=service)
        return PlanNotFound(plan_id, [run.id for run in await self.own_plans()])

    async def _alive_agents(self) -> Sequence[str]:
        pools = await together(self.pool(name) for name in await self.pools())
        return [
            agent.info.id
            for pool in pools
            for agent in pool.agents
            if agent.state is AgentState.ALIVE
        ]


def _begun(plan: PlanSpec, by: str, reason: str) -> CommandLog:
    """Who started it, if that was said."""
    if not by and not reason:
        return CommandLog()
    outcome = Outcome(code=200, message=f"Received cmd: start {plan.name}")
    entry = LogEntry(
        at=datetime.now(UTC), verb=Verb.START, by=by, reason=reason, via="start", outcome=outcome
    )
    return CommandLog(entries=(entry,))
