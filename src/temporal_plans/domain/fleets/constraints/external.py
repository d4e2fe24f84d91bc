"""K11: the products that the environment has without entities are in range."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.relations import broken_by, refusal_of
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def external_in_range(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    found = broken_by(proposal, world, "K11")
    return refusal_of(
        found, "external-dependencies", "change what external-dependencies says of the environment"
    )


EXTERNAL = Constraint(
    id="K11",
    title="external dependencies are in range",
    stage=Stage.TARGET,
    rule=external_in_range,
    applies="IN UP RO RB",
    ignored="CM",
    who_can_act=("environment editor",),
)
