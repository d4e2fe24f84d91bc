"""K18: no promotion tests the entity; leaving a recalled release and a rollback may begin."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.suppressed import next_edge, refusal_by
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import Origin
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def not_in_promotion(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    return refusal_by(proposal, world, now, Origin.PROMOTION)


def next_change(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    return next_edge(proposal, world, now, Origin.PROMOTION)


PROMOTION_SUPPRESSION = Constraint(
    id="K18",
    title="not under test by a promotion",
    stage=Stage.ISSUE,
    rule=not_in_promotion,
    applies="IN UP CF UN",
    ignored="RO RB CM",
    next_change=next_change,
    who_can_act=("product editor",),
)
