"""K9: the installed entities that depend on the entity still fit."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.relations import broken_by, refusal_of
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def dependents_fit(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    found = broken_by(proposal, world, "K9")
    return refusal_of(found, "dependents", "change the dependents first")


DEPENDENTS = Constraint(
    id="K9",
    title="dependents stay in range",
    stage=Stage.TARGET,
    rule=dependents_fit,
    applies="IN UP UN RO RB",
    ignored="CM",
    who_can_act=(
        "entity operator",
        "environment editor",
    ),
)
