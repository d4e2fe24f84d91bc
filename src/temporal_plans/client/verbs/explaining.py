"""Verbs that explain why plans and services make no progress."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from temporal_plans.client.errors import ClusterUnreachable, PlanNotFound, PlansError, Refused
from temporal_plans.client.reading.diagnosis import Diagnosis, findings
from temporal_plans.client.reading.explaining import needs_offers, why_cut_short, with_refusals
from temporal_plans.client.reading.package_diagnosis import package_findings
from temporal_plans.client.reading.package_remedies import is_held_up, with_causes
from temporal_plans.client.reading.remedies import (
    has_failed,
    places_of,
    with_logs,
    with_lost_agents,
    with_rollback,
)
from temporal_plans.client.reading.standstill import with_silent_pools, with_stuck
from temporal_plans.client.reading.steps_at_work import needs_agents, with_agents, with_work
from temporal_plans.client.temporal.connection import ServerUnreachableError
from temporal_plans.client.temporal.workflow_errors import NoSuchWorkflow, WorkflowIsClosed
from temporal_plans.client.verbs.plans import PlanVerbs
from temporal_plans.client.verbs.pools import PoolVerbs
from temporal_plans.domain.plans.explain import ElementQuery, Explanations, PendingWork
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.text import listed
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.owners import PlanRecord
from temporal_plans.messages.packages import InstanceStatus, ObjectsReport
from temporal_plans.messages.pools import PoolStatus

_OTHERS_LIMIT = 5
"""Plans that are named because another one waits for their end."""


class ExplainVerbs(PlanVerbs, PoolVerbs):
    """Explanations of plans, services and packages."""

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
        if await self._may_have_causes(explanations, service):
            explanations = with_causes(explanations)
        return with_stuck(explanations, query, stuck)

    async def _may_have_causes(self, explanations: Explanations, service: str) -> bool:
        """Whether steps of a package may be held up by something in its cluster."""
        if not service or not any(map(is_held_up, explanations.explanations)):
            return False
        with suppress(PlansError):
            return await self.content_of(service) == "package"
        return False

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

    async def awaited_before(self, plan_id: str) -> str:
        """Return what a plan of a service waits for before it begins, in words; empty when it has
        begun. Raises ServiceNotFound."""
        service, _, plan = plan_id.rpartition("/")
        records = await self.plans(service)
        if any(record.name == plan and record.run for record in records):
            with suppress(PlanNotFound):
                await self.show(plan_id)
                return ""
        work = await self._pending_work(service_id(service))
        starts = [one.last_failure for one in work if one.type == "start_plan"]
        others = [one.workflow_id for one in records if one.open and one.name != plan]
        ends = f"the end of {listed(others, _OTHERS_LIMIT)}" if others else "a worker"
        return next(filter(None, starts), "") or f"plan {plan_id} waits for {ends}"

    async def _explain_package(self, service: str) -> Diagnosis:
        status = await self.instance(service)
        log = await self.service_log(service)
        stuck = await self.stuck(*(record.workflow_id for record in status.plans))
        found = package_findings(
            status,
            seen=await self._seen(status),
            log=log,
            stuck=[one for one in stuck if not one.element[0]],
            work=await self._pending_work(service_id(service)),
            now=datetime.now(UTC),
        )
        plans, silent = await self._explain_open(status.plans)
        return Diagnosis(
            service=service, findings=found, plans=plans, silent=silent, objects=status.objects
        )

    async def _seen(self, status: InstanceStatus) -> ObjectsReport | None:
        """Return how objects of a package are now; while a plan changes them, and without a worker
        of the cluster, how they were seen last."""
        at_work = [one for one in status.plans if one.open and not (one.resting or one.stopped)]
        if status.objects and not at_work:
            try:
                return await self.notable_objects(status.name)
            except ClusterUnreachable as unreachable:
                return ObjectsReport(problem=str(unreachable))
        return status.seen.report if status.seen else None

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
