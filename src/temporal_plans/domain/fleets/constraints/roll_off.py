"""K6: the target is within the bounds that the recalls of the installed version set."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def within_bounds(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    """The newest of the minimum releases counts, and going back is allowed when all recalls allow
    it."""
    current, target = proposal.entity.state.version, proposal.version
    one = parse_version(current) if current else None
    other = parse_version(target) if target else None
    if one is None or other is None or one.key is None or other.key is None:
        return None
    back = other.key <= one.key
    reasons: list[Reason] = []
    for recall in world.recalls(proposal.entity, current):
        least = parse_version(recall.roll_off.minimum_release or "")
        if least is not None and least.key is not None and other.key < least.key:
            problem = f"{target} is older than {least.text}, the minimum of the recall {recall.id}"
        elif back and not recall.roll_off.allow_downgrade:
            problem = f"the recall {recall.id} does not allow going back to {target}"
        else:
            continue
        value = {"id": recall.id, "minimum": recall.roll_off.minimum_release, "version": target}
        reasons.append(Reason(field="recalls", problem=problem, value=value))
    if not reasons:
        return None
    cure = "publish a newer release, or edit the recall"
    return refused(FleetCode.ROLL_OFF_NOT_ALLOWED, *reasons, cure=cure)


ROLL_OFF = Constraint(
    id="K6",
    title="within the bounds of the recall",
    stage=Stage.TARGET,
    rule=within_bounds,
    applies="RO",
    ignored="CM",
    who_can_act=("product editor",),
)
