"""K28: the settings of the entity are approved."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def approved(proposal: Proposal, _world: World, _now: datetime, /) -> Refusal | None:
    settings = proposal.entity.settings
    if settings is None or settings.awaiting_approval is None:
        return None
    reason = Reason(
        field="awaiting-approval",
        problem=f"the change request {settings.awaiting_approval} is not approved",
        value={"request": settings.awaiting_approval},
        fix="approve it, or withdraw it",
    )
    return refused(FleetCode.AWAITING_APPROVAL, reason)


APPROVAL = Constraint(
    id="K28",
    title="settings are approved",
    stage=Stage.INPUT,
    rule=approved,
    applies="IN UP CF UN",
    who_can_act=("environment editor",),
)
