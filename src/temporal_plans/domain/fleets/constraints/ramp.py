"""K22: a ramped rollout has a place for one more upgrade."""

from datetime import datetime, timedelta

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.products import ONE_UPGRADE, Ramp
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal

_MICROSECOND = timedelta(microseconds=1)


def has_slot(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    """Upgrades start evenly over the duration of the ramp, which passes only while the product's
    maintenance window is open, with a head start of one upgrade at most."""
    ramp = ramp_of(proposal, world)
    if ramp is None:
        return None
    elapsed = world.product_window(proposal.entity.product).open_time(ramp.started_at, now)
    started = _started(ramp, proposal, world)
    if elapsed >= ramp.duration or started < allowed(ramp, elapsed):
        return None
    again = _slot_at(ramp, proposal, world)
    reason = Reason(
        field="ramp",
        problem=f"{started} of {ramp.entities} entities have started {ramp.version}",
        value={"version": ramp.version, "started": started, "entities": ramp.entities},
    )
    return refused(FleetCode.RAMP_LIMIT, reason, cure="wait, or use a command", again=again)


def next_slot(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    """Return when the ramp has the next place."""
    ramp = ramp_of(proposal, world)
    slot = _slot_at(ramp, proposal, world) if ramp else None
    return slot if slot is not None and slot > now else None


def ramp_of(proposal: Proposal, world: World) -> Ramp | None:
    """Return the ramp that paces a proposal."""
    catalogue = world.catalogue(proposal.entity)
    if catalogue is None or proposal.version is None or not catalogue.product.ramps:
        return None
    return catalogue.ramp(world.channel(proposal.entity), proposal.version)


def _started(ramp: Ramp, proposal: Proposal, world: World) -> int:
    key = (proposal.entity.product, ramp.channel, ramp.version)
    return ramp.started + world.ramp_starts.get(key, 0)


def allowed(ramp: Ramp, elapsed: timedelta) -> int:
    """Return how many upgrades may have started when the window was open for so long."""
    whole = ramp.duration // _MICROSECOND
    parts = ramp.entities * (elapsed // _MICROSECOND) * ONE_UPGRADE // whole + ramp.head_start
    return parts // ONE_UPGRADE


def _slot_at(ramp: Ramp, proposal: Proposal, world: World) -> datetime | None:
    """Return when one more than has started may start."""
    started, whole = _started(ramp, proposal, world), ramp.duration // _MICROSECOND
    parts = (started + 1) * ONE_UPGRADE - ramp.head_start
    each = ramp.entities * ONE_UPGRADE
    wanted = -(-parts * whole // each) if each else whole
    window = world.product_window(proposal.entity.product)
    return window.time_of_open(ramp.started_at, min(wanted, whole) * _MICROSECOND)


RAMP = Constraint(
    id="K22",
    title="within the ramped rollout",
    stage=Stage.ISSUE,
    rule=has_slot,
    applies="UP",
    ignored="IN CF UN RO RB CM",
    next_change=next_slot,
    who_can_act=("product editor", "entity operator"),
)
