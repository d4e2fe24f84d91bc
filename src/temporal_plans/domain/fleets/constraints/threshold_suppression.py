"""K17: not too many entities of the environment failed; a rollback may begin."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.suppressed import next_edge, refusal_by
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import Origin
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def below_threshold(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    return refusal_by(proposal, world, now, Origin.ENVIRONMENT_THRESHOLD)


def next_change(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    return next_edge(proposal, world, now, Origin.ENVIRONMENT_THRESHOLD)


THRESHOLD_SUPPRESSION = Constraint(
    id="K17",
    title="environment not suppressed after failures",
    stage=Stage.ISSUE,
    rule=below_threshold,
    applies="IN UP CF UN RO",
    ignored="RB CM",
    next_change=next_change,
    who_can_act=("environment editor",),
)
