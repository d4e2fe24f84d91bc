"""Verbs about schedules: plans that are begun by the clock."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from temporal_plans.client.errors import PlanNotFound, Refused, ScheduleNotFound
from temporal_plans.client.gateway import NoSuchWorkflow, WorkflowIsClosed
from temporal_plans.client.schedules import (
    Overlap,
    ScheduleExists,
    ScheduleLine,
    ScheduleOrder,
    ScheduleView,
    Timetable,
)
from temporal_plans.client.verbs import Verbs
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.generation import generate
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_check import problems as plan_problems
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.messages.cluster import ConfigQuery
from temporal_plans.messages.plan import PlanInput
from temporal_plans.messages.scheduled import ScheduledPlan
from temporal_plans.messages.service import ServiceStatus

_STANDING = frozenset({"recovery", "decommission"})


class ScheduleVerbs(Verbs):
    """Ids are ``<service>/<plan>`` or ``<service>/<plan>/<name>`` for plans of services, and the
    plan's name, or the one that was given, for others: their runs are called so. Raise
    ScheduleNotFound for an unknown id."""

    async def schedule(
        self,
        service: str,
        plan: str,
        when: Timetable,
        *,
        name: str = "",
        arguments: Mapping[str, str] | None = None,
        overlap: Overlap = Overlap.SKIP,
        note: str = "",
    ) -> str:
        """Have a plan of a service begun by the clock; the schedule's id.

        Raises ServiceNotFound, PlanNotFound, SpecError for its parameters, and Refused.
        """
        service = service.strip("/")
        await self._check_plan(service, plan, arguments or {})
        if overlap is Overlap.TERMINATE_OTHER:
            raise Refused(
                "terminate-other would leave the plan of a service at work with nobody waiting for "
                "it; use cancel-other, which stops the plan before it is begun anew"
            )
        schedule_id = "/".join(part for part in (service, plan, name) if part)
        work = ScheduledPlan(
            service=service, plan=plan, parameters=dict(arguments or {}), schedule=schedule_id
        )
        return await self._create(
            ScheduleOrder(id=schedule_id, work=work, when=when, overlap=overlap, note=note)
        )

    async def schedule_plan(
        self,
        plan: PlanSpec,
        when: Timetable,
        *,
        name: str = "",
        arguments: Mapping[str, str] | None = None,
        overlap: Overlap = Overlap.SKIP,
        note: str = "",
    ) -> str:
        """The same for a plan that belongs to no service."""
        _, faults = check_arguments(plan.parameters, arguments or {})
        if problems := (*plan_problems(plan, of_service=False), *faults):
            raise SpecError(problems)
        fields = {field: getattr(plan, field) for field in PlanSpec.model_fields}
        work = PlanInput(**fields, arguments=dict(arguments or {}))
        schedule_id = name or plan.name
        return await self._create(
            ScheduleOrder(id=schedule_id, work=work, when=when, overlap=overlap, note=note)
        )

    async def schedules(self, service: str = "") -> list[ScheduleLine]:
        """All schedules of plans, or those of one service. A new one may take a moment to be
        listed."""
        lines = await self._gateway.schedules.list()
        prefix = f"{service.strip('/')}/" if service else ""
        return [line for line in lines if line.id.startswith(prefix)]

    async def show_schedule(self, schedule_id: str) -> ScheduleView:
        async with self._known(schedule_id):
            return await self._gateway.schedules.show(schedule_id)

    async def pause_schedule(self, schedule_id: str, note: str = "") -> None:
        async with self._known(schedule_id):
            await self._gateway.schedules.pause(schedule_id, note)

    async def unpause_schedule(self, schedule_id: str, note: str = "") -> None:
        async with self._known(schedule_id):
            await self._gateway.schedules.unpause(schedule_id, note)

    async def trigger_schedule(self, schedule_id: str) -> None:
        """Have it run now, as its overlap policy allows."""
        async with self._known(schedule_id):
            await self._gateway.schedules.trigger(schedule_id)

    async def delete_schedule(self, schedule_id: str) -> None:
        """What it began goes on."""
        async with self._known(schedule_id):
            await self._gateway.schedules.delete(schedule_id)

    async def _create(self, order: ScheduleOrder) -> str:
        try:
            await self._gateway.schedules.create(order)
        except ScheduleExists:
            raise Refused(
                f"there is a schedule {order.id!r} already; give this one another --name, or "
                f"delete that with `temporal plan schedule delete {order.id}`"
            ) from None
        return order.id

    async def _check_plan(self, service: str, plan: str, arguments: Mapping[str, str]) -> None:
        status = await self._ask_service(service, "status", ServiceStatus)
        names = [record.name for record in status.plans]
        if plan not in names:
            raise PlanNotFound(plan, names, service=service)
        if plan in _STANDING:
            raise Refused(f"plan {plan!r} is begun by the service itself, not by the clock")
        spec = await self._ask_service(service, "config", ServiceSpec, ConfigQuery())
        for generated in generate(spec):
            if generated.name == plan:
                _, faults = check_arguments(generated.parameters, arguments)
                if faults:
                    raise SpecError(faults)

    @asynccontextmanager
    async def _known(self, schedule_id: str) -> AsyncGenerator[None]:
        try:
            yield
        except (NoSuchWorkflow, WorkflowIsClosed):  # closed: it was deleted a moment ago
            known = [line.id for line in await self._gateway.schedules.list()]
            raise ScheduleNotFound(schedule_id, known) from None
