"""The queries of an environment."""

from temporalio import workflow

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import FleetDecision, Outcome
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.fleets import (
    EnvironmentDeclaration,
    EnvironmentInput,
    EnvironmentState,
    EnvironmentStatus,
    ExplainEntity,
    PlanRows,
    PlansQuery,
    StatusRow,
    fleet_plan_id,
)
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.mechanics.refusal import refused


class EnvironmentQueries:
    """A base class of the Environment workflow."""

    input: EnvironmentInput
    state: EnvironmentState
    undecided: str

    @workflow.query(name="status", description="All entities, and what holds them back.")
    def status(self) -> EnvironmentStatus:
        environment = self.state.environment
        used = book.products_of(self.state)
        unknown = sorted((used - self.state.products.keys()) | (used & set(self.state.stale)))
        return EnvironmentStatus(
            name=environment.name,
            connection=str(environment.facts.connection),
            rows=tuple(self._row(one) for one in environment.entities),
            suppressions=environment.suppressions,
            overrides=environment.overrides,
            next_wakeup=self.state.next_wakeup,
            problems=(
                *(f"the newest releases of {name} are not known yet" for name in unknown),
                *([f"nothing is decided: {self.undecided}"] if self.undecided else ()),
            ),
        )

    def _row(self, entity: Entity) -> StatusRow:
        name, plan = entity.name, entity.state.active_plan
        stands = self.state.standings.get(name)
        if stands is None:
            stands = EntityStanding(outcome=Outcome.NO_WORK, since=workflow.now())
        stands = stands.but(installed=entity.state.version)
        environment = self.state.environment.name
        issued = self.state.issued.get(name)
        return StatusRow(
            environment=environment,
            entity=name,
            product=entity.product,
            kind=entity.settings.kind if entity.settings else "",
            standing=stands.but(message=issued.lost) if issued and issued.lost else stands,
            plan_id=fleet_plan_id(environment, name, plan.number) if plan else "",
            plan_status=str(plan.status) if plan else "",
        )

    @workflow.query(name="explain", description="Every constraint's verdict about an entity.")
    def explain(self, query: ExplainEntity) -> FleetDecision:
        if book.entity_of(self.state, query.entity) is None:
            known = [one.name for one in self.state.environment.entities]
            text = f"environment {self.input.name} has no entity {query.entity!r}"
            raise refused(Code.NOT_FOUND, text, fix=suggestion(query.entity, known))
        return decide(book.snapshot_of(self.state), query.at, only={query.entity})

    @workflow.query(name="plans", description="Its plans, newest first.")
    def plans(self, query: PlansQuery) -> PlanRows:
        running = [
            book.row_of(self.state, one.name, one.state.active_plan)
            for one in self.state.environment.entities
            if one.state.active_plan is not None
        ]
        rows = [*reversed(running), *reversed(self.state.history)]
        wanted = [one for one in rows if query.entity in ("", one.entity)]
        return PlanRows(rows=tuple(wanted))

    @workflow.query(name="export", description="What a document of it would say.")
    def export(self) -> EnvironmentDeclaration:
        return self.state.declaration
