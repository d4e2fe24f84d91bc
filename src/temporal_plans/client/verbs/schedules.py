"""Verbs for schedules of plans."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from temporal_plans.client.errors import PlanNotFound, Refused, ScheduleNotFound
from temporal_plans.client.temporal.schedules import (
    Overlap,
    ScheduleExists,
    ScheduleRequest,
    ScheduleSummary,
    ScheduleView,
    Timetable,
)
from temporal_plans.client.temporal.workflow_errors import NoSuchWorkflow, WorkflowIsClosed
from temporal_plans.client.verbs.base import Verbs
from temporal_plans.domain.owners.admission import by_itself
from temporal_plans.domain.packages.plan_specs import plan_specs
from temporal_plans.domain.packages.plans import CLEANUP
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.services.generation import generate
from temporal_plans.domain.services.plan_names import RESERVED
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.cron import cron_problems
from temporal_plans.domain.values.refusal import Code, Refusal, SpecError
from temporal_plans.messages.owners import CommonStatus
from temporal_plans.messages.packages import PackageConfigurations
from temporal_plans.messages.plans import PlanInput
from temporal_plans.messages.schedules import ScheduledPlan
from temporal_plans.messages.services import ConfigQuery


class ScheduleVerbs(Verbs):
    """The verbs for schedules. They raise ScheduleNotFound for an unknown id.

    The id of a schedule is ``<service>/<plan>`` or ``<service>/<plan>/<name>`` for a service's
    plan; for a plan without a service it is ``name`` or else the plan's name, and its runs have
    that id.
    """

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
        """Create a schedule for a service's plan, and return the schedule's id.

        Raises ServiceNotFound, PlanNotFound, SpecError for invalid parameters, and Refused.
        """
        service = service.strip("/")
        await self._check_plan(service, plan, arguments or {})
        if overlap is Overlap.TERMINATE_OTHER:
            raise Refused.of(
                Code.INVALID,
                "not for the plan of a service, because the plan would continue",
                field="overlap",
                value=overlap.value,
                fix="use cancel-other, which stops the plan before it starts again",
            )
        schedule_id = "/".join(part for part in (service, plan, name) if part)
        work = ScheduledPlan(
            service=service, plan=plan, parameters=dict(arguments or {}), schedule=schedule_id
        )
        return await self._create(
            ScheduleRequest(id=schedule_id, work=work, when=when, overlap=overlap, note=note)
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
        """Create a schedule for a plan that belongs to no service, and return the schedule's id.

        Raises SpecError for an invalid plan or parameters, and Refused.
        """
        _, faults = check_arguments(plan.parameters, arguments or {})
        if problems := (*plan_problems(plan, of_service=False), *faults):
            raise SpecError(problems)
        fields = {field: getattr(plan, field) for field in PlanSpec.model_fields}
        work = PlanInput(**fields, arguments=dict(arguments or {}))
        schedule_id = name or plan.name
        return await self._create(
            ScheduleRequest(id=schedule_id, work=work, when=when, overlap=overlap, note=note)
        )

    async def schedules(self, service: str = "") -> list[ScheduleSummary]:
        """Return all schedules of plans, or those of one service. A new schedule may take a moment
        to be listed."""
        found = await self._gateway.schedules.list()
        prefix = f"{service.strip('/')}/" if service else ""
        return [schedule for schedule in found if schedule.id.startswith(prefix)]

    async def show_schedule(self, schedule_id: str) -> ScheduleView:
        """Return a schedule with all details."""
        async with self._existing(schedule_id):
            return await self._gateway.schedules.show(schedule_id)

    async def pause_schedule(self, schedule_id: str, note: str = "") -> None:
        """Pause a schedule: it starts no more runs."""
        async with self._existing(schedule_id):
            await self._gateway.schedules.pause(schedule_id, note)

    async def unpause_schedule(self, schedule_id: str, note: str = "") -> None:
        """Let a paused schedule start runs again."""
        async with self._existing(schedule_id):
            await self._gateway.schedules.unpause(schedule_id, note)

    async def trigger_schedule(self, schedule_id: str) -> None:
        """Start a run now, if the overlap policy allows it."""
        async with self._existing(schedule_id):
            await self._gateway.schedules.trigger(schedule_id)

    async def delete_schedule(self, schedule_id: str) -> None:
        """Delete a schedule. A run that it started continues."""
        async with self._existing(schedule_id):
            await self._gateway.schedules.delete(schedule_id)

    async def _create(self, request: ScheduleRequest) -> str:
        crons = request.when.cron
        if problems := tuple(one for cron in crons for one in cron_problems(cron, "cron")):
            raise Refused(Refusal(code=Code.INVALID, reasons=problems))
        try:
            await self._gateway.schedules.create(request)
        except ScheduleExists:
            raise Refused.of(
                Code.NAME_TAKEN,
                f"schedule {request.id!r} already exists",
                fix="choose another --name, or delete it with "
                f"`temporal plan schedule delete {request.id}`",
            ) from None
        return request.id

    async def _check_plan(self, service: str, plan: str, arguments: Mapping[str, str]) -> None:
        status = await self._query_service(service, "status", CommonStatus)
        names = [record.name for record in status.plans]
        if plan not in names:
            raise PlanNotFound(plan, names, service=service)
        if status.content == "package":
            await self._check_package_plan(service, plan, arguments)
            return
        if plan in RESERVED:
            raise Refused(by_itself(plan).but(subject="schedule"))
        spec = await self._query_service(service, "config", ServiceSpec, ConfigQuery())
        for generated in generate(spec):
            if generated.name == plan:
                _, faults = check_arguments(generated.parameters, arguments)
                if faults:
                    raise SpecError(faults)

    async def _check_package_plan(
        self, service: str, plan: str, arguments: Mapping[str, str]
    ) -> None:
        kept = await self._query_service(service, "configurations", PackageConfigurations)
        installation = next(
            one for one in kept.configurations if one.id == kept.target
        ).installation
        if plan == CLEANUP:
            raise Refused(by_itself(plan).but(subject="schedule"))
        declared = plan_specs(installation.package, installation.switches)[plan].parameters
        _, faults = check_arguments(declared, arguments)
        if faults:
            raise SpecError(faults)

    @asynccontextmanager
    async def _existing(self, schedule_id: str) -> AsyncGenerator[None]:
        try:
            yield
        except (NoSuchWorkflow, WorkflowIsClosed):  # closed: the schedule was just deleted
            known = [schedule.id for schedule in await self._gateway.schedules.list()]
            raise ScheduleNotFound(schedule_id, known) from None
