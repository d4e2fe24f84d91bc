"""K26: the environment is connected, and its agents report."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.environment import Connection
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.times import in_text
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def connected(_proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    facts, limit = world.facts, world.settings.agent_timeout
    if world.settings.spoke and facts.connection is Connection.UNKNOWN:
        fix = "start it: temporal-plan spoke --environment NAME --hub ADDRESS"
        reason = Reason(field="connection", problem="its spoke has not registered yet", fix=fix)
        return refused(FleetCode.NOT_CONNECTED, reason)
    if facts.connection is not Connection.CONNECTED:
        reason = Reason(
            field="connection",
            problem=f"the environment is {facts.connection}",
            value={"connection": facts.connection.value},
            fix=f"set it to {Connection.CONNECTED}",
        )
        return refused(FleetCode.NOT_CONNECTED, reason)
    seen = facts.agent_seen_at
    if seen is None or now < seen + limit:
        return None
    agent = "its spoke" if world.settings.spoke else "an agent"
    reason = Reason(
        field="agent-seen-at",
        problem=f"{agent} was last heard of at {in_text(seen)}",
        value={"seen_at": seen.isoformat()},
    )
    noun = "spoke" if world.settings.spoke else "agent"
    return refused(
        FleetCode.AGENT_STALE, reason, cure=f"start the {noun}, or repair its connection"
    )


def silence(_proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    """Return when the agents will have been silent for too long."""
    seen = world.facts.agent_seen_at
    end = None if seen is None else seen + world.settings.agent_timeout
    return end if end is not None and end > now else None


CONNECTED = Constraint(
    id="K26",
    title="connected, and agents report",
    stage=Stage.ISSUE,
    rule=connected,
    applies="IN UP CF UN RO RB CM",
    next_change=silence,
    who_can_act=("environment editor",),
)
