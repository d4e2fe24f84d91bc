"""The updates of an environment: what people and other systems ask of it."""

from datetime import timedelta

from temporalio import workflow

from temporal_plans.domain.fleets.commands import command_refusal
from temporal_plans.domain.fleets.entities import Entity
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
from temporal_plans.messages.fleets import (
    STOPS_LIMIT,
    CancelPlans,
    DeclaredEnvironment,
    DeleteRequest,
    EntityFacts,
    EntityReport,
    EnvironmentApply,
    EnvironmentInput,
    EnvironmentState,
    FleetCommand,
    OverrideWindows,
    ReadEnvironment,
    RemoveOverride,
    ReportFacts,
    ResolvePlan,
    Suppress,
    Unsuppress,
)
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.audited import Audited


class EnvironmentVerbs(Audited):
    """A base class of the Environment workflow. ``declared``: a document was applied."""

    input: EnvironmentInput
    state: EnvironmentState
    declared: bool

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
        self.state = book.applied(self.state, request.environment, declared)
        self.declared = True
        count = len(request.environment.entities)
        return self.done("apply", request, f"{title} is applied, with {count} entities")

    @apply.validator
    def _check_apply(self, request: EnvironmentApply) -> None:
        if request.environment.name != self.input.name:
            self._refuse("name", f"this is environment {self.input.name}", request.environment.name)

    @workflow.update(name="report", description="What other systems know of it and its entities.")
    async def report(self, request: ReportFacts) -> Outcome:
        state, now = self.state, workflow.now()
        if request.facts is not None:
            given = {name: getattr(request.facts, name) for name in request.facts.model_fields_set}
            facts = state.environment.facts.but(**given)
            state = state.but(environment=state.environment.but(facts=facts))
        for name, one in request.entities.items():
            state = book.with_entity_state(state, name, **_known(one), reported_at=now)
        self.state = state
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
        changes: dict[str, object] = {"reported_at": workflow.now()}
        if report.health is not None:
            changes |= {"health": report.health, "health_message": report.message}
        self.state = book.with_entity_state(self.state, report.entity, **changes)
        self.changed()

    # --- stops and windows ---

    @workflow.update(name="suppress", description="No plans for an entity, or for all.")
    async def suppress(self, request: Suppress) -> Outcome:
        now = workflow.now()
        start = request.start or now
        end = request.end or (start + request.duration if request.duration else None)
        one = Suppression(
            id=request.id or self._new_id("manual"),
            entity=request.entity,
            start=start,
            end=end,
            reason=request.reason,
            by=request.by,
            cancel_active=request.cancel_active,
        )
        self._put_suppression(one)
        until = f" until {end:%Y-%m-%d %H:%M:%S %Z}" if end else ""
        text = f"suppression {one.id} of {request.entity or 'all entities'}{until}"
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
            self._refuse("end", "must be after start", request.end.isoformat())

    @workflow.update(name="unsuppress", description="Remove a suppression of any origin.")
    async def unsuppress(self, request: Unsuppress) -> Outcome:
        environment = self.state.environment
        kept = tuple(one for one in environment.suppressions if one.id != request.id)
        self.state = self.state.but(environment=environment.but(suppressions=kept))
        verb = f"unsuppress {request.id}"
        return self.done(verb, request, f"suppression {request.id} is removed")

    @unsuppress.validator
    def _check_unsuppress(self, request: Unsuppress) -> None:
        self._known_id(request.id, [one.id for one in self.state.environment.suppressions])

    @workflow.update(name="override", description="Open the maintenance windows once.")
    async def override(self, request: OverrideWindows) -> Outcome:
        start = request.start or workflow.now()
        one = WindowOverride(
            id=request.id or self._new_id("override"),
            entity=request.entity,
            admits=request.admits,
            start=start,
            end=start + request.duration,
            reason=request.reason,
            by=request.by,
        )
        environment = self.state.environment
        overrides = (*environment.overrides, one)
        self.state = self.state.but(environment=environment.but(overrides=overrides))
        text = f"override {one.id} admits {one.admits} changes until {one.end:%Y-%m-%d %H:%M:%S %Z}"
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
        environment = self.state.environment
        kept = tuple(one for one in environment.overrides if one.id != request.id)
        self.state = self.state.but(environment=environment.but(overrides=kept))
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

    def _command(self, request: FleetCommand) -> Command:
        return Command(
            id="command",
            type=request.command,
            version=request.version,
            reason=request.reason,
            by=request.by,
            at=workflow.now(),
        )

    @workflow.update(name="cancel", description="Cancel the plan of an entity, or all.")
    async def cancel(self, request: CancelPlans) -> Outcome:
        names = self._cancellable(request)
        now = workflow.now()
        if request.suppress is not None:
            self._put_suppression(
                Suppression(
                    id=self._new_id("cancelled"),
                    entity=request.entity,
                    start=now,
                    end=now + request.suppress,
                    reason=request.reason or "its plan is cancelled",
                    by=request.by,
                )
            )
        why = f"cancelled by {request.by or 'an unnamed client'}"
        for name in names:
            state = book.with_issued(self.state, name, ending=why)
            self.state = book.with_active(state, name, ActiveStatus.CANCELLING)
        verb = f"cancel {request.entity or ''}".strip()
        if not names:
            return self.recorded(
                verb, request, Outcome(result=Result.NOTHING, message="no plan runs")
            )
        return self.done(verb, request, f"asked to end: {', '.join(names)}")

    @cancel.validator
    def _check_cancel(self, request: CancelPlans) -> None:
        self._needs_declaration()
        _check_duration(self, request.suppress)
        if request.entity is None:
            return
        self._entity(request.entity)
        plan = self.state.issued.get(request.entity)
        if plan is None:
            self._refuse("entity", "no plan of it runs", request.entity)
        elif plan.lost:
            fix = "say how it ended: fleet resolve"
            self._refuse("entity", f"nothing is known of its plan: {plan.lost}", fix=fix)

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

    def _put_suppression(self, one: Suppression) -> None:
        environment = self.state.environment
        suppressions = (*environment.suppressions, one)
        self.state = self.state.but(environment=environment.but(suppressions=suppressions))

    def _new_id(self, word: str) -> str:
        number = self.state.numbers + 1
        self.state = self.state.but(numbers=number)
        return f"{word}-{number}"

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
        for name in ("health", "health_message", "data_schema", "pending_secrets")
        if getattr(one, name) is not None
    }
    if one.version is not None:
        given |= {"version": one.version, "config": EntityConfig()}
    return given
