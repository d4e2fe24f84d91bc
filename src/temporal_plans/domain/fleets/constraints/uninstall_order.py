"""K27: what requires an entity is uninstalled before it."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.violations import required_dependents
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def dependents_gone(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    found = required_dependents(world, proposal.entity)
    if not found:
        return None
    reasons = (
        Reason(
            field="dependents",
            problem=f"{one.name} ({one.product}) needs it",
            value={"other": one.name, "product": one.product},
        )
        for one in found
    )
    return refused(FleetCode.DEPENDENTS_INSTALLED, *reasons, cure="uninstall the dependents first")


UNINSTALL_ORDER = Constraint(
    id="K27",
    title="dependents are uninstalled first",
    stage=Stage.ISSUE,
    rule=dependents_gone,
    applies="UN",
    ignored="CM",
    who_can_act=("environment editor",),
)
