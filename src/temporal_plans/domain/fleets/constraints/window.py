"""What the constraints on maintenance windows share."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import WindowClass, first_time, next_time
from temporal_plans.domain.fleets.times import in_text
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def class_of(proposal: Proposal) -> WindowClass:
    return WindowClass.DOWNTIME if proposal.downtime else WindowClass.NO_DOWNTIME


def refusal_outside(proposal: Proposal, world: World, now: datetime) -> Refusal | None:
    """Return the refusal of a plan outside its windows and overrides."""
    wanted = class_of(proposal)
    window = world.window(proposal.entity, wanted)
    if window.is_open(now) or any(
        one.active(now) and one.admits_class(wanted) and one.concerns(proposal.entity.name)
        for one in world.overrides
    ):
        return None
    opening = first_time((window.next_opening(now), _next_override(proposal, world, now, wanted)))
    when = f"next opens {in_text(opening)}" if opening else "no opening is known"
    reason = Reason(
        field="window",
        problem=f"outside the {wanted} window, which {when}"
        if opening
        else f"outside the {wanted} window, of which {when}",
        value={"class": wanted.value, "next_opening": opening.isoformat() if opening else None},
    )
    cure = "wait, edit the windows, or add an override"
    return refused(FleetCode.OUTSIDE_WINDOW, reason, cure=cure, again=opening)


def _next_override(
    proposal: Proposal, world: World, now: datetime, wanted: WindowClass
) -> datetime | None:
    return first_time(
        one.start
        for one in world.overrides
        if one.start > now and one.admits_class(wanted) and one.concerns(proposal.entity.name)
    )


def next_edge(proposal: Proposal, world: World, now: datetime) -> datetime | None:
    """Return when a window or an override of the plan's class next opens or closes."""
    wanted = class_of(proposal)
    edges = [world.window(proposal.entity, wanted).next_edge(now)]
    edges += [
        next_time(now, one.start, one.end)
        for one in world.overrides
        if one.admits_class(wanted) and one.concerns(proposal.entity.name)
    ]
    return first_time(edges)
