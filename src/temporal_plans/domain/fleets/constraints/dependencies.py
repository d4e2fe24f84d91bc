"""K8: the products that the target depends on are there, in range."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.relations import broken_by, refusal_of
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def satisfied(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    found = broken_by(proposal, world, "K8")
    return refusal_of(
        found,
        "dependencies",
        "change the dependencies first, or ignore them in ignored-dependencies",
    )


DEPENDENCIES = Constraint(
    id="K8",
    title="dependencies are in range",
    stage=Stage.TARGET,
    rule=satisfied,
    applies="IN UP RO RB",
    ignored="CM",
    who_can_act=(
        "entity operator",
        "environment editor",
    ),
)
