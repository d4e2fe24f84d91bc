"""K3: an upgrade goes to a newer version, never to an older one."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def newer(proposal: Proposal, _world: World, _now: datetime, /) -> Refusal | None:
    current, target = proposal.entity.state.version, proposal.version
    if current is None or target is None:
        return None
    one, other = parse_version(current), parse_version(target)
    if one is None or other is None or one.key is None or other.key is None:
        return None  # K2 refuses it
    if other.key > one.key:
        return None
    reason = Reason(
        field="version",
        problem=f"is not newer than {current}",
        value={"version": target, "current": current},
        fix="use a command to go back",
    )
    return refused(FleetCode.NO_NEWER_RELEASE, reason)


NEWER = Constraint(
    id="K3",
    title="newer than the installed version",
    stage=Stage.TARGET,
    rule=newer,
    applies="UP",
    ignored="CM",
    who_can_act=("entity operator",),
)
