"""K4: no active recall covers the target, but for vulnerabilities that K29 allows."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.recalls import RecallCause
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def not_recalled(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    recalls = world.recalls(proposal.entity, proposal.version)
    if proposal.vulnerable and all(one.cause is RecallCause.VULNERABILITY for one in recalls):
        return None
    if not recalls:
        return None
    reasons = (
        Reason(
            field="recalls",
            problem=f"{proposal.version} is recalled"
            + ("" if one.id == proposal.version else f" by {one.id}")
            + (f" ({one.reason})" if one.reason else ""),
            value={"id": one.id, "reason": one.reason, "by": one.by, "cause": one.cause.value},
        )
        for one in recalls
    )
    return refused(FleetCode.RECALLED, *reasons, cure="revert or edit the recall")


RECALLED = Constraint(
    id="K4",
    title="not recalled",
    stage=Stage.TARGET,
    rule=not_recalled,
    applies="IN UP RO",
    ignored="RB CM",
    who_can_act=("product editor",),
)
