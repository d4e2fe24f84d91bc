"""K5: no recall freezes the installed version."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.suppressions import first_time
from temporal_plans.domain.fleets.times import in_text
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def not_frozen(proposal: Proposal, world: World, now: datetime, /) -> Refusal | None:
    entity, environment = proposal.entity, world.environment.name
    reasons: list[Reason] = []
    ends: list[datetime] = []
    for recall in world.recalls(entity, entity.state.version):
        until = recall.frozen_until(environment, now)
        if until is None:
            continue
        known = until.year < datetime.max.year
        ends += [until] if known else []
        text = f" until {in_text(until)}" if known else ""
        reasons.append(
            Reason(
                field="recalls",
                problem=f"{entity.state.version} is frozen by the recall {recall.id}{text}",
                value={"id": recall.id, "until": until.isoformat() if known else None},
            )
        )
    if not reasons:
        return None
    again = max(ends) if len(ends) == len(reasons) else None
    cure = "wait, or edit or revert the recall"
    return refused(FleetCode.FROZEN_BY_RECALL, *reasons, cure=cure, again=again)


def next_expiry(proposal: Proposal, world: World, now: datetime, /) -> datetime | None:
    """Return when the next freeze of the installed version ends."""
    recalls = world.recalls(proposal.entity, proposal.entity.state.version)
    ends = (recall.roll_off.freeze_until for recall in recalls)
    return first_time(end for end in ends if end is not None and end > now)


FREEZE = Constraint(
    id="K5",
    title="not frozen by a recall",
    stage=Stage.TARGET,
    rule=not_frozen,
    applies="UP RO",
    ignored="CF UN RB CM",
    next_change=next_expiry,
    who_can_act=("product editor",),
)
