"""K21: a change with downtime begins in a maintenance window for downtime."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.window import next_edge, refusal_outside
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def in_downtime_window(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    return refusal_outside(proposal, world, now) if proposal.downtime else None


def next_change(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    return next_edge(proposal, world, now) if proposal.downtime else None


DOWNTIME_WINDOW = Constraint(
    id="K21",
    title="in a window for changes with downtime",
    stage=Stage.ISSUE,
    rule=in_downtime_window,
    applies="IN UP CF UN RO",
    ignored="RB CM",
    next_change=next_change,
    who_can_act=("environment editor", "product editor"),
)
