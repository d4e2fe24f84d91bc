"""K15: no person suppressed the entity or its environment."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.suppressed import next_edge, refusal_by
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import Origin
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def not_suppressed(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    return refusal_by(proposal, world, now, Origin.MANUAL)


def next_change(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    return next_edge(proposal, world, now, Origin.MANUAL)


MANUAL_SUPPRESSION = Constraint(
    id="K15",
    title="not suppressed by a person",
    stage=Stage.ISSUE,
    rule=not_suppressed,
    applies="IN UP CF UN RO RB",
    ignored="CM",
    next_change=next_change,
    who_can_act=(
        "environment editor",
        "entity operator",
    ),
)
