"""The queries of an environment."""

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import FleetDecision, Outcome
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.entity_graph import EntityGraph, entity_graph
from temporal_plans.domain.fleets.explanation import Explanation, explained
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environment_views import (
    EnvironmentStatus,
    ExplainEntity,
    StatusRow,
)
from temporal_plans.messages.fleets.environments import EnvironmentInput, EnvironmentState
from temporal_plans.messages.fleets.names import fleet_plan_id
from temporal_plans.messages.fleets.plans import IssuedPlan, PlanRows, PlansQuery
from temporal_plans.workflows.fleets import book
from temporal_plans.workflows.fleets.room import Room
from temporal_plans.workflows.fleets.spoke_book import spoke_problems
from temporal_plans.workflows.mechanics.refusal import refused

_TOO_LARGE = "it is too large to be carried on for long: remove entities, or make several of it"


def _waits(plan: IssuedPlan) -> str:
    """Return what a plan waits for that is not at work; empty when it is."""
    if plan.lost or plan.started:
        return plan.lost
    if plan.spoke:
        return "its plan is not taken by the spoke yet"
    return "its plan is being started; where that lasts, another plan of its id still runs"


class EnvironmentQueries:
    """A base class of the Environment workflow."""

    input: EnvironmentInput
    state: EnvironmentState
    undecided: str
    room: Room

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
            spoke=self.state.spoke,
            problems=(
                *spoke_problems(self.state),
                *(f"the newest releases of {name} are not known yet" for name in unknown),
                *([_TOO_LARGE] if self.room.full else ()),
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
            standing=stands.but(message=_waits(issued) or stands.message) if issued else stands,
            plan_id=fleet_plan_id(environment, name, plan.number) if plan else "",
            plan_status=str(plan.status) if plan else "",
        )

    @workflow.query(name="explain", description="Every constraint's verdict about an entity.")
    def explain(self, query: ExplainEntity) -> FleetDecision:
        if book.entity_of(self.state, query.entity) is None:
            raise self._no_entity(query.entity)
        return decide(book.snapshot_of(self.state), query.at, only={query.entity})

    def _no_entity(self, name: str) -> ApplicationError:
        known = [one.name for one in self.state.environment.entities]
        text = f"environment {self.input.name} has no entity {name!r}"
        return refused(Code.NOT_FOUND, text, fix=suggestion(name, known))

    @workflow.query(name="explanation", description="Every candidate release, with all verdicts.")
    def explanation(self, query: ExplainEntity) -> Explanation:
        answer = explained(World(book.snapshot_of(self.state)), query.entity, query.at)
        if answer is None:
            raise self._no_entity(query.entity)
        return answer

    @workflow.query(name="graph", description="Its entities and their dependencies.")
    def graph(self) -> EntityGraph:
        return entity_graph(World(book.snapshot_of(self.state)))

    @workflow.query(name="plans", description="Its plans, newest first.")
    def plans(self, query: PlansQuery) -> PlanRows:
        running = [
            book.running_row_of(self.state, one.name, one.state.active_plan)
            for one in self.state.environment.entities
            if one.state.active_plan is not None
        ]
        rows = [*reversed(running), *reversed(self.state.history)]
        wanted = [one for one in rows if query.entity in ("", one.entity)]
        if not wanted and query.entity and book.entity_of(self.state, query.entity) is None:
            raise self._no_entity(query.entity)
        return PlanRows(rows=tuple(wanted))

    @workflow.query(name="export", description="What a document of it would say.")
    def export(self) -> EnvironmentDeclaration:
        return self.state.declaration
