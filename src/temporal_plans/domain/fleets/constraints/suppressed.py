"""What the constraints on suppressions share."""

from collections.abc import Iterator
from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import Origin, Suppression, first_time
from temporal_plans.domain.fleets.times import in_text
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def refusal_by(proposal: Proposal, world: World, now: datetime, origin: Origin) -> Refusal | None:
    """Return the refusal by the active suppressions of an origin; each is named."""
    if not world.stops.all:
        return None
    active = [one for one in _of(proposal, world, origin) if one.active(now)]
    if not active:
        return None
    ends = [one.end for one in active if one.end is not None]
    again = max(ends) if len(ends) == len(active) else None
    reasons = (Reason(field="suppressions", problem=_text(one), value=_data(one)) for one in active)
    cure = "remove it, or wait for its end" if again else "remove it"
    return refused(FleetCode.SUPPRESSED, *reasons, cure=cure, again=again)


def next_edge(proposal: Proposal, world: World, now: datetime, origin: Origin) -> datetime | None:
    """Return when the next suppression of an origin takes or loses effect."""
    if not world.stops.all:
        return None
    return first_time(one.next_edge(now) for one in _of(proposal, world, origin))


def _of(proposal: Proposal, world: World, origin: Origin) -> Iterator[Suppression]:
    for one in world.stops.of(proposal.entity):
        if one.origin is not origin:
            continue
        if one.target_version is not None and one.target_version != proposal.version:
            continue
        config = one.target_config
        if config is not None and config != proposal.config.revision:
            continue
        yield one


def _text(one: Suppression) -> str:
    scope = f"the entity {one.entity}" if one.entity else "the environment"
    end = f" until {in_text(one.end)}" if one.end else ""
    why = f": {one.reason}" if one.reason else ""
    return f"the {one.origin} suppression {one.id} stops {scope}{end}{why}"


def _data(one: Suppression) -> dict[str, object]:
    return {
        "id": one.id,
        "origin": one.origin.value,
        "scope": "entity" if one.entity else "environment",
        "end": one.end.isoformat() if one.end else None,
        "by": one.by,
        "reason": one.reason,
    }
