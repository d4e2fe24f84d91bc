"""K23: an entity with errors is not upgraded; the ways out of an error stay open."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def healthy(proposal: Proposal, _world: World, _now: datetime, /) -> Refusal | None:
    state = proposal.entity.state
    if state.health is not Health.ERROR:
        return None
    reason = Reason(
        field="health",
        problem=f"a replica is in ERROR{f': {said}' if (said := state.health_message) else ''}",
        value={"health": state.health.value, "message": state.health_message},
    )
    return refused(FleetCode.UNHEALTHY, reason, cure="repair the entity, or use a command")


HEALTH = Constraint(
    id="K23",
    title="no replica in error",
    stage=Stage.ISSUE,
    rule=healthy,
    applies="UP",
    ignored="CF UN RO RB CM",
    who_can_act=("entity operator",),
)
