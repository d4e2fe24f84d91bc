"""Activities that read what was declared, and decide: work that needs data of time zones, or takes
longer than a workflow task should."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from temporalio import activity
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.fleets.installations import PackageInstallations
from temporal_plans.activities.fleets.kinds.record import EntityKind
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.environment import Snapshot
from temporal_plans.domain.fleets.standing import Pass, passed
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.model import WITH_DEFAULTS
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, SpecError
from temporal_plans.loading.fleets.documents import EnvironmentDocument
from temporal_plans.loading.fleets.schedules import WeeklySchedule
from temporal_plans.loading.fleets.snapshots import (
    declared_settings,
    product_weekdays,
    product_window,
)
from temporal_plans.loading.forms.form import read_form
from temporal_plans.messages.fleets.declarations import (
    DeclaredEnvironment,
    EnvironmentDeclaration,
    ProductDeclaration,
    ReadEnvironment,
    Schedule,
)
from temporal_plans.messages.fleets.environments import DecideEnvironment
from temporal_plans.messages.fleets.payloads import KeepPayload
from temporal_plans.messages.promotions import ProductWindows, ReadProduct


class DeclarationActivities:
    """``kinds`` are the kinds of entities by name; ``packages`` reads operator packages."""

    def __init__(
        self,
        kinds: Mapping[str, EntityKind],
        releases: Releases,
        packages: PackageInstallations,
    ) -> None:
        self._kinds = kinds
        self._releases = releases
        self._packages = packages

    @activity.defn(name="read_environment")
    async def read_environment(self, request: ReadEnvironment) -> DeclaredEnvironment:
        """Return the settings that a declaration stands for. Raises ApplicationError (Refused, not
        retryable) with all that is wrong with it. The worker goes on meanwhile."""
        async with heartbeats():
            return await asyncio.to_thread(self._declared, request)

    def _declared(self, request: ReadEnvironment) -> DeclaredEnvironment:
        document = _document(request.declaration)
        problems = list(self._unknown_kinds(request.declaration))
        try:
            declared = declared_settings(document, request.now)
        except SpecError as error:
            raise _refused((*error.reasons, *problems)) from None
        if problems:
            raise _refused(problems)
        return DeclaredEnvironment(
            settings=declared.settings, entities=dict(declared.entities), until=declared.until
        )

    def _unknown_kinds(self, declaration: EnvironmentDeclaration) -> Iterator[Reason]:
        for name, entity in declaration.entities.items():
            if entity.kind not in self._kinds:
                yield Reason(
                    field=f"entities.{name}.kind",
                    problem="is no kind of entity that this worker knows",
                    value=entity.kind,
                    fix=suggestion(entity.kind, self._kinds),
                )

    @activity.defn(name="check_product")
    async def check_product(self, product: ProductDeclaration) -> None:
        """Raise ApplicationError (Refused, not retryable) when a product's window can't be used."""
        async with heartbeats():
            _schedule(product.maintenance_window)

    @activity.defn(name="read_product")
    async def read_product(self, request: ReadProduct) -> ProductWindows:
        """Return the intervals of a product's window and of its weekdays around a time. Raises
        ApplicationError (Refused, not retryable) for a window that can't be used."""
        async with heartbeats():
            schedule = _schedule(request.maintenance_window)
            weekdays = product_weekdays(schedule, request.now)
            assert weekdays.until is not None
            return ProductWindows(
                window=product_window(schedule, request.now) if schedule else None,
                weekdays=weekdays,
                until=weekdays.until,
            )

    @activity.defn(name="keep_payload")
    async def keep_payload(self, request: KeepPayload) -> None:
        """Store the files of a release. Raises ApplicationError (Refused, not retryable) when no
        kind of entity can use them."""
        async with heartbeats():
            await self._check_payload(request)
            await self._releases.keep(request.payload, request.holder)

    async def _check_payload(self, request: KeepPayload) -> None:
        files, names = request.payload.files, request.payload.names
        users = [kind for kind in self._kinds.values() if kind.files & set(names)]
        if not users:
            known = sorted({name for kind in self._kinds.values() for name in kind.files})
            fix = f"name one of them: {', '.join(known)}"
            text = "belongs to no kind of entity"
            raise _refused([Reason(field=name, problem=text, fix=fix) for name in names])
        problems = [fault for kind in users for fault in kind.faults(files)]
        if (package := request.payload.package) is not None:
            problems += await self._packages.faults(package.digest, package.nested)
        if problems:
            raise _refused(problems)

    @activity.defn(name="decide_environment")
    async def decide_environment(self, request: DecideEnvironment) -> Pass:
        """Return what a decision about an environment changes. The worker goes on meanwhile."""
        snapshot = Snapshot(environment=request.environment, products=request.products)

        def decided() -> Pass:
            return passed(snapshot, decide(snapshot, request.now), request.standings)

        async with heartbeats():
            return await asyncio.to_thread(decided)


def window_of(schedule: Schedule | None, now: datetime) -> Window | None:
    """Return the intervals of a product's window around a time. Raises ApplicationError."""
    weekly = _schedule(schedule)
    return product_window(weekly, now) if weekly else None


def _schedule(schedule: Schedule | None) -> WeeklySchedule | None:
    if schedule is None:
        return None
    form = read_form(WeeklySchedule, schedule.model_dump(mode="json"))
    if form.value is None or form.problems:
        raise _refused(
            one.but(field=f"maintenance-window.{one.field}".rstrip(".")) for one in form.problems
        )
    return form.value


def _document(declaration: EnvironmentDeclaration) -> EnvironmentDocument:
    written = declaration.model_dump(mode="json", context=WITH_DEFAULTS)
    form = read_form(EnvironmentDocument, {**written, "kind": "environment"})
    if form.value is None or form.problems:
        raise _refused(form.problems)
    return form.value


def _refused(reasons: Iterable[Reason]) -> ApplicationError:
    return refusal_error(Refusal(code=Code.INVALID, reasons=tuple(reasons)))
