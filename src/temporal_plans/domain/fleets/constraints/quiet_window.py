"""K20: a change without downtime begins in a maintenance window."""

from datetime import datetime

from temporal_plans.domain.fleets.constraints.record import Constraint, Stage
from temporal_plans.domain.fleets.constraints.window import next_edge, refusal_outside
from temporal_plans.domain.fleets.plans import Intent
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Refusal


def in_quiet_window(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    """Leaving a recalled release needs no window, unless the environment says so."""
    if proposal.downtime or _exempt(proposal, world):
        return None
    return refusal_outside(proposal, world, now)


def next_change(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    return None if proposal.downtime else next_edge(proposal, world, now)


def _exempt(proposal: Proposal, world: World) -> bool:
    settings = world.settings
    needed = settings.require_maintenance_windows_for_no_downtime_recalled_release_roll_offs
    return proposal.intent is Intent.RECALL_ROLL_OFF and not needed


QUIET_WINDOW = Constraint(
    id="K20",
    title="in a window for changes without downtime",
    stage=Stage.ISSUE,
    rule=in_quiet_window,
    applies="IN UP CF UN RO",
    ignored="RB CM",
    next_change=next_change,
    who_can_act=("environment editor", "product editor"),
)
