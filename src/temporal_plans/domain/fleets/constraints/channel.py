"""K1: the target is on the channel that the entity follows."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def on_channel(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    channel = world.channel(proposal.entity)
    release = proposal.release
    if release is not None and channel in release.channels:
        return None
    reason = Reason(
        field="release",
        problem=f"is not on the channel {channel}",
        value={"version": proposal.version, "channel": channel},
        fix=f"add it to {channel}, or set release-channel",
    )
    return refused(FleetCode.NOT_ON_CHANNEL, reason)


CHANNEL = Constraint(
    id="K1",
    title="on the followed channel",
    stage=Stage.TARGET,
    rule=on_channel,
    applies="IN UP RO",
    ignored="CM",
    who_can_act=("channel contributor",),
)
