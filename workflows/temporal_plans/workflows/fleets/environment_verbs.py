"""The updates of an environment: what people and other systems ask of it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from temporalio import workflow

from temporal_plans.domain.fleets.approvals import ChangeKind
from temporal_plans.domain.fleets.commands import command_refusal
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.other_product import product_refusal
from temporal_plans.domain.fleets.plans import (
    ActiveStatus,
    Command,
    EntityConfig,
    EntityVersion,
)
from temporal_plans.domain.fleets.suppressions import Suppression, WindowOverride
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.fleets.change_requests import ChangeRequest
from temporal_plans.messages.fleets.commands import CancelPlans, FleetCommand, ResolvePlan
from temporal_plans.messages.fleets.declarations import DeclaredEnvironment, ReadEnvironment
from temporal_plans.messages.fleets.environments import EnvironmentApply, EnvironmentState
from temporal_plans.messages.fleets.reports import EntityFacts, EntityReport, ReportFacts
from temporal_plans.messages.fleets.requests import DeleteRequest
from temporal_plans.messages.fleets.stops import (
    STOPS_LIMIT,
    OverrideWindows,
    RemoveOverride,
    Suppress,
    Unsuppress,
)
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.audited import Audited
from temporal_plans.workflows.fleets.change_requests import (
    CarryOut,
    ChangeRequestVerbs,
    kinds_of,
)


class EnvironmentVerbs(ChangeRequestVerbs):
    """A base class of the Environment workflow. ``declared``: a document was applied."""

    def _carriers(self) -> Mapping[str, CarryOut]:
        return {
            "apply": self._carry_apply,
            "suppress": self._carry_suppress,
            "unsuppress": self._carry_unsuppress,
            "override": self._carry_override,
            "remove_override": self._carry_remove_override,
            "delete": self._carry_delete,
        }

    # --- documents and facts ---

    @workflow.update(name="apply", description="What a document of the environment says.")
    async def apply(self, request: EnvironmentApply) -> Outcome:
        now = workflow.now()
        read = ReadEnvironment(declaration=request.environment, now=now)
        declared = await self.checked(
            "apply", request, "read_environment", read, DeclaredEnvironment
        )
        title = f"environment {self.input.name}"
        if self.declared and request.environment == self.state.declaration:
            self.state = book.applied(self.state, request.environment, declared)
            outcome = Outcome(result=Result.ALREADY, message=f"{title} is so already")
            return self.recorded("apply", request, outcome)
        kinds = kinds_of(self.state.declaration, request.environment)
        asked = await self._asked(
            "apply",
            request,
            kinds,
            lambda: book.applied(self.state, request.environment, declared),
            f"apply a document of {title}",
        )
        return asked or self._apply(request, declared)

    async def _carry_apply(self, one: ChangeRequest) -> Outcome:
        request = EnvironmentApply.model_validate(one.wanted)
        read = ReadEnvironment(declaration=request.environment, now=workflow.now())
        declared = await self.checked(
            "apply", request, "read_environment", read, DeclaredEnvironment
        )
        self.refuse_late("apply", request, self._outdated(one))  # meanwhile
        return self._apply(request, declared)

    def _apply(self, request: EnvironmentApply, declared: DeclaredEnvironment) -> Outcome:
        title = f"environment {self.input.name}"
        self.state = book.applied(self.state, request.environment, declared)
        self.declared = True
        count = len(request.environment.entities)
        return self.done("apply", request, f"{title} is applied, with {count} entities")

    @apply.validator
    def _check_apply(self, request: EnvironmentApply) -> None:
        if request.environment.name != self.input.name:
            self._refuse("name", f"this is environment {self.input.name}", request.environment.name)
        self.refuse(product_refusal(self.state.environment, request.environment.entities))

    @workflow.update(name="report", description="What other systems know of it and its entities.")
    async def report(self, request: ReportFacts) -> Outcome:
        state, now = self.state, workflow.now()
        if request.facts is not None:
            given = {name: getattr(request.facts, name) for name in request.facts.model_fields_set}
            facts = state.environment.facts.but(**given)
            state = state.but(environment=state.environment.but(facts=facts))
        self.state = book.with_entity_states(
            state,
            {name: {**_known(one), "reported_at": now} for name, one in request.entities.items()},
        )
        return self.done("report", request, f"{len(request.entities)} entities are reported")

    @report.validator
    def _check_report(self, request: ReportFacts) -> None:
        self._needs_declaration()
        for name, one in request.entities.items():
            entity = self._entity(name, f"entities.{name}")
            if one.version is not None and entity.state.active_plan is not None:
                field, text = f"entities.{name}.version", "a plan of the entity runs"
                self._refuse(field, text, one.version, "report it after its end")

    @workflow.signal(name="reported", description="From a plan of an entity: what it has reached.")
    def on_reported(self, report: EntityReport) -> None:
        if report.malformed:
            self.record_problem("reported", report.malformed)
            return
        plan = self.state.issued.get(report.entity)
        if plan is None or plan.number != report.number:
            return
        self.state = book.with_report(self.state, report, workflow.now())
        self.changed()

    # --- stops and windows ---

    @workflow.update(name="suppress", description="No plans for an entity, or for all.")
    async def suppress(self, request: Suppress) -> Outcome:
        what = f"suppress {request.entity or 'all entities'}"
        asked = await self._asked(
            "suppress",
            request,
            (ChangeKind.SUPPRESSIONS,),
            lambda: self._with_suppression(_suppression(request, "preview", workflow.now())),
            what,
        )
        return asked or self._suppress(request)

    async def _carry_suppress(self, one: ChangeRequest) -> Outcome:
        request = Suppress.model_validate(one.wanted)
        self._check_suppress(request)
        return self._suppress(request)

    def _suppress(self, request: Suppress) -> Outcome:
        id = request.id or self._new_id("manual")
        one = _suppression(request, id, workflow.now())
        self.state = self._with_suppression(one)
        since = f" from {_text(one.start)}" if one.start > workflow.now() else ""
        until = f" until {_text(one.end)}" if one.end else " until it is removed"
        text = f"suppression {one.id} of {self._place(request.entity)}{since}{until}"
        return self.done(f"suppress {request.entity or ''}".strip(), request, text)

    @suppress.validator
    def _check_suppress(self, request: Suppress) -> None:
        self._needs_declaration()
        if request.entity is not None:
            self._entity(request.entity)
        taken = [one.id for one in self.state.environment.suppressions]
        self._check_stop(request.id, taken)
        if request.end is not None and request.duration is not None:
            self._refuse("duration", "is given beside end", fix="give one of them")
        _check_duration(self, request.duration)
        if request.end is not None and request.end <= (request.start or workflow.now()):
            fix = "give a later time, or a duration"
            start = "start" if request.start else "now"
            self._refuse("end", f"must be after {start}", request.end.isoformat(), fix)

    @workflow.update(name="unsuppress", description="Remove a suppression of any origin.")
    async def unsuppress(self, request: Unsuppress) -> Outcome:
        asked = await self._asked(
            "unsuppress",
            request,
            (ChangeKind.SUPPRESSIONS,),
            lambda: self._without_suppression(request.id),
            f"remove the suppression {request.id}",
        )
        return asked or self._unsuppress(request)

    async def _carry_unsuppress(self, one: ChangeRequest) -> Outcome:
        request = Unsuppress.model_validate(one.wanted)
        self._check_unsuppress(request)
        return self._unsuppress(request)

    def _unsuppress(self, request: Unsuppress) -> Outcome:
        self.state = self._without_suppression(request.id)
        verb = f"unsuppress {request.id}"
        return self.done(verb, request, f"suppression {request.id} is removed")

    @unsuppress.validator
    def _check_unsuppress(self, request: Unsuppress) -> None:
        self._known_id(request.id, [one.id for one in self.state.environment.suppressions])

    @workflow.update(name="override", description="Open the maintenance windows once.")
    async def override(self, request: OverrideWindows) -> Outcome:
        where = request.entity or "all entities"
        asked = await self._asked(
            "override",
            request,
            (ChangeKind.OVERRIDES,),
            lambda: self._with_override(_override(request, "preview", workflow.now())),
            f"open the windows of {where} for {request.admits} changes",
        )
        return asked or self._override(request)

    async def _carry_override(self, one: ChangeRequest) -> Outcome:
        request = OverrideWindows.model_validate(one.wanted)
        self._check_override(request)
        return self._override(request)

    def _override(self, request: OverrideWindows) -> Outcome:
        id = request.id or self._new_id("override")
        one = _override(request, id, workflow.now())
        self.state = self._with_override(one)
        since = f" from {_text(one.start)}" if one.start > workflow.now() else ""
        text = (
            f"override {one.id} of {self._place(request.entity)} admits {one.admits} changes{since}"
            f" until {_text(one.end)}"
        )
        return self.done(f"override {request.entity or ''}".strip(), request, text)

    @override.validator
    def _check_override(self, request: OverrideWindows) -> None:
        self._needs_declaration()
        if request.entity is not None:
            self._entity(request.entity)
        self._check_stop(request.id, [one.id for one in self.state.environment.overrides])
        _check_duration(self, request.duration)
        if not request.reason.strip():
            self._refuse("reason", "is missing", fix="say why")

    @workflow.update(name="remove_override", description="Close the windows again.")
    async def remove_override(self, request: RemoveOverride) -> Outcome:
        asked = await self._asked(
            "remove_override",
            request,
            (ChangeKind.OVERRIDES,),
            lambda: self._without_override(request.id),
            f"remove the override {request.id}",
        )
        return asked or self._remove_override(request)

    async def _carry_remove_override(self, one: ChangeRequest) -> Outcome:
        request = RemoveOverride.model_validate(one.wanted)
        self._check_remove_override(request)
        return self._remove_override(request)

    def _remove_override(self, request: RemoveOverride) -> Outcome:
        self.state = self._without_override(request.id)
        verb = f"remove override {request.id}"
        return self.done(verb, request, f"override {request.id} is removed")

    @remove_override.validator
    def _check_remove_override(self, request: RemoveOverride) -> None:
        self._known_id(request.id, [one.id for one in self.state.environment.overrides])

    # --- plans ---

    @workflow.update(name="command", description="A break-glass command to an entity.")
    async def command(self, request: FleetCommand) -> Outcome:
        command = self._command(request).but(id=self._new_id(str(request.command)))
        self.state = book.with_entity_state(self.state, request.entity, command=command)
        verb = f"{request.command} {request.entity}"
        return self.done(verb, request, f"the command {command.id} waits for its turn")

    @command.validator
    def _check_command(self, request: FleetCommand) -> None:
        self._needs_declaration()
        entity = self._entity(request.entity)
        if not request.reason.strip():
            self._refuse("reason", "is missing", fix="say why")
        self.refuse(command_refusal(entity, self._command(request)))
        known = self.state.products.get(entity.product)
        versions = [one.version for one in known.product.releases] if known else []
        if known and request.version is not None and request.version not in versions:
            fix = suggestion(request.version, versions) or "publish it first"
            text = f"{entity.product} has no such release"
            self._refuse("version", text, request.version, fix, Code.NOT_FOUND)

    def _command(self, request: FleetCommand) -> Command:
        return Command(
            id="command",
            type=request.command,
            version=request.version,
            reason=request.reason,
            by=request.by,
            at=workflow.now(),
        )

    @workflow.update(
        name="cancel", description="Cancel an entity's plan and command, or all plans."
    )
    async def cancel(self, request: CancelPlans) -> Outcome:
        if request.entity is not None and self._withdraws(request):
            return self._withdraw(request, request.entity)
        names = self._cancellable(request)
        now = workflow.now()
        verb, rest = f"cancel {request.entity or ''}".strip(), None
        if not names and _stops_nothing(request):
            return self.recorded(
                verb, request, Outcome(result=Result.NOTHING, message="no plan runs")
            )
        if request.suppress is not None:
            rest = Suppression(
                id=self._new_id("cancelled"),
                entity=request.entity,
                start=now,
                end=now + request.suppress,
                reason=request.reason or "its plan is cancelled",
                by=request.by,
            )
            self.state = self._with_suppression(rest)
        why = f"cancelled by {request.by or 'an unnamed client'}"
        for name in names:
            state = book.with_issued(self.state, name, ending=why)
            self.state = book.with_active(state, name, ActiveStatus.CANCELLING)
        text = f"asked to end: {', '.join(names)}" if names else "no plan runs"
        if rest is not None and rest.end is not None:
            where = self._place(request.entity)
            text += f"; suppression {rest.id} of {where} until {_text(rest.end)}"
        return self.done(verb, request, text)

    @cancel.validator
    def _check_cancel(self, request: CancelPlans) -> None:
        self._needs_declaration()
        _check_duration(self, request.suppress)
        if request.entity is None:
            if request.command:
                self._refuse("entity", "is missing", fix="name the entity whose command it is")
            return
        self._entity(request.entity)
        plan = self.state.issued.get(request.entity)
        if self._withdraws(request):
            return
        if request.command:
            self._refuse("command", "no command waits", request.entity, code=Code.NOT_FOUND)
        if plan is None:
            fix = "suppress it, if no plan may begin"
            self._refuse("entity", "no plan of it runs", request.entity, fix)
        elif plan.lost:
            fix = "say how it ended: fleet resolve"
            self._refuse("entity", f"nothing is known of its plan: {plan.lost}", fix=fix)

    def _withdraws(self, request: CancelPlans) -> bool:
        """Return whether a request is about the command that waits: it says so, or no plan of the
        entity runs. Otherwise the plan is ended, and its command goes next."""
        entity = book.entity_of(self.state, request.entity or "")
        waits = entity is not None and entity.state.command is not None
        return waits and (request.command or request.entity not in self.state.issued)

    def _withdraw(self, request: CancelPlans, name: str) -> Outcome:
        """Withdraw the command that waits for an entity: it was not begun, so nothing has to end
        or to rest."""
        command = self._entity(name).state.command
        self.state = book.with_entity_state(self.state, name, command=None)
        id = command.id if command else ""
        return self.done(f"cancel {name}", request, f"the command {id} is withdrawn")

    def _cancellable(self, request: CancelPlans) -> list[str]:
        wanted = [request.entity] if request.entity else sorted(self.state.issued)
        return [
            name
            for name in wanted
            if name in self.state.issued
            and not self.state.issued[name].lost
            and not self.state.issued[name].ending
        ]

    @workflow.update(name="resolve", description="Say how a plan ended of which nothing is known.")
    async def resolve(self, request: ResolvePlan) -> Outcome:
        entity = book.entity_of(self.state, request.entity)
        plan = entity.state.active_plan if entity else None
        reached: EntityVersion | None = None
        if request.nothing_installed:
            reached = EntityVersion()
        elif request.version is not None and plan is not None:
            known = [one for one in (plan.to, plan.before) if one.version == request.version]
            reached = (
                known[0] if known else EntityVersion(version=request.version, config=EntityConfig())
            )
        why = self.state.issued[request.entity].lost
        text = f"resolved by {request.by or 'an unnamed client'}: {request.reason}"[:1000]
        self.state = book.plan_ended(
            self.state,
            request.entity,
            request.outcome,
            workflow.now(),
            changed=False,
            errors=(why, text),
            reached=reached,
        )
        verb = f"resolve {request.entity}"
        return self.done(verb, request, f"the plan of {request.entity} {request.outcome}")

    @resolve.validator
    def _check_resolve(self, request: ResolvePlan) -> None:
        self._needs_declaration()
        self._entity(request.entity)
        plan = self.state.issued.get(request.entity)
        if plan is None or not plan.lost:
            text = "what became of its plan is known" if plan is None else "its plan runs"
            self._refuse("entity", text, request.entity, "cancel a plan that runs")

    @workflow.update(name="delete", description="Forget the environment; what runs stays.")
    async def delete(self, request: DeleteRequest) -> Outcome:
        asked = await self._asked(
            "delete",
            request,
            (ChangeKind.DELETION,),
            lambda: self.state,
            f"delete environment {self.input.name}",
        )
        return asked or self._delete(request)

    async def _carry_delete(self, one: ChangeRequest) -> Outcome:
        request = DeleteRequest.model_validate(one.wanted)
        self._check_delete(request)
        return self._delete(request)

    def _delete(self, request: DeleteRequest) -> Outcome:
        self.over = True
        return self.done("delete", request, f"environment {self.input.name} is deleted")

    @delete.validator
    def _check_delete(self, request: DeleteRequest) -> None:
        if self.state.issued and not request.force:
            names = ", ".join(sorted(self.state.issued)[:10])
            fix = "cancel them, or use force: then they go on by themselves"
            self.refuse(
                Refusal.of(Code.IN_USE, f"plans run: {names}", field="environment", fix=fix)
            )

    # --- details ---

    def _with_suppression(self, one: Suppression) -> EnvironmentState:
        environment = self.state.environment
        suppressions = (*environment.suppressions, one)
        return self.state.but(environment=environment.but(suppressions=suppressions))

    def _without_suppression(self, id: str) -> EnvironmentState:
        environment = self.state.environment
        kept = tuple(one for one in environment.suppressions if one.id != id)
        return self.state.but(environment=environment.but(suppressions=kept))

    def _with_override(self, one: WindowOverride) -> EnvironmentState:
        environment = self.state.environment
        overrides = (*environment.overrides, one)
        return self.state.but(environment=environment.but(overrides=overrides))

    def _without_override(self, id: str) -> EnvironmentState:
        environment = self.state.environment
        kept = tuple(one for one in environment.overrides if one.id != id)
        return self.state.but(environment=environment.but(overrides=kept))

    def _new_id(self, word: str) -> str:
        number = self.state.numbers + 1
        self.state = self.state.but(numbers=number)
        return f"{word}-{number}"

    def _place(self, entity: str | None) -> str:
        return f"{self.input.name}/{entity}" if entity else f"all of {self.input.name}"

    def _needs_declaration(self) -> None:
        if not self.declared:
            text = f"environment {self.input.name} was not applied yet"
            self.refuse(Refusal.of(Code.NOT_FOUND, text, field="environment"))

    def _entity(self, name: str, field: str = "entity") -> Entity:
        """Return an entity. Raises ApplicationError (Refused) for one that there is not."""
        entity = book.entity_of(self.state, name)
        if entity is None:
            known = [one.name for one in self.state.environment.entities]
            self._refuse(field, "is not there", name, suggestion(name, known), Code.NOT_FOUND)
        assert entity is not None
        return entity

    def _known_id(self, id: str, known: list[str]) -> None:
        if id not in known:
            self._refuse("id", "is not there", id, suggestion(id, known), Code.NOT_FOUND)

    def _check_stop(self, id: str | None, taken: list[str]) -> None:
        if id is not None and id in taken:
            self._refuse("id", "is in use", id, "choose another", Code.NAME_TAKEN)
        if len(taken) >= STOPS_LIMIT:
            self._refuse("id", f"there are {STOPS_LIMIT} already", fix="remove some")

    def _refuse(
        self,
        field: str,
        problem: str,
        value: str | None = None,
        fix: str = "",
        code: Code = Code.INVALID,
    ) -> None:
        reason = Reason(field=field, problem=problem, value=value, fix=fix)
        self.refuse(Refusal(code=code, reasons=(reason,)))


def _suppression(request: Suppress, id: str, now: datetime) -> Suppression:
    start = request.start or now
    return Suppression(
        id=id,
        entity=request.entity,
        start=start,
        end=request.end or (start + request.duration if request.duration else None),
        reason=request.reason,
        by=request.by,
        cancel_active=request.cancel_active,
    )


def _override(request: OverrideWindows, id: str, now: datetime) -> WindowOverride:
    start = request.start or now
    return WindowOverride(
        id=id,
        entity=request.entity,
        admits=request.admits,
        start=start,
        end=start + request.duration,
        reason=request.reason,
        by=request.by,
    )


def _stops_nothing(request: CancelPlans) -> bool:
    """Return whether a request that finds no plan of its environment leaves it as it is. It used to
    suppress the environment, and answered only that no plan runs."""
    return request.entity is None and workflow.patched("a cancel without plans suppresses nothing")


def _text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S %Z}"


_LONGEST = timedelta(days=3660)


def _check_duration(verbs: Audited, duration: timedelta | None) -> None:
    if duration is not None and not timedelta() < duration <= _LONGEST:
        text = f"must be more than 0, and at most {_LONGEST.days} days"
        verbs.refuse(Refusal.of(Code.INVALID, text, field="duration"))


def _known(one: EntityFacts) -> dict[str, object]:
    """Return what a report says, by the names of an entity's state. A version that no plan put
    there has an unknown configuration."""
    given: dict[str, object] = {
        name: getattr(one, name)
        for name in ("health", "health_message", "all_live", "data_schema", "pending_secrets")
        if getattr(one, name) is not None
    }
    if one.version is not None:
        given |= {"version": one.version, "config": EntityConfig()}
    return given
