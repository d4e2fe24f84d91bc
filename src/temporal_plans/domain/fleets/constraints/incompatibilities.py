"""K10: nothing that is installed is incompatible with the target, declared by either side."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.relations import broken_by, refusal_of
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def compatible(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    found = broken_by(proposal, world, "K10")
    return refusal_of(
        found, "incompatibilities", "uninstall the other, or put it in another dependency group"
    )


INCOMPATIBILITIES = Constraint(
    id="K10",
    title="nothing incompatible is installed",
    stage=Stage.TARGET,
    rule=compatible,
    applies="IN UP RO RB",
    ignored="CM",
    who_can_act=(
        "entity operator",
        "environment editor",
    ),
)
