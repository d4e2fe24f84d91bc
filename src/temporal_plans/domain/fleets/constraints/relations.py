"""What the constraints on relations between entities share."""

from temporal_plans.domain.fleets.constraints.record import refused
from temporal_plans.domain.fleets.plans import Intent
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.violations import Violation, newly_broken
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def broken_by(proposal: Proposal, world: World, rule: str) -> tuple[Violation, ...]:
    """Return the relations that a proposal breaks, of one constraint."""
    entity = proposal.entity
    if proposal.version is not None and proposal.version == entity.state.version:
        return ()
    installs = proposal.intent is Intent.INSTALL
    found = newly_broken(world, entity, proposal.version, installs=installs)
    return tuple(sorted(one for one in found if one.rule == rule))


def refusal_of(found: tuple[Violation, ...], field: str, cure: str) -> Refusal | None:
    """Return the refusal for broken relations; its code is that of the first."""
    if not found:
        return None
    reasons = (
        Reason(
            field=field,
            problem=f"{one.other} is {f'at {one.current}' if one.current else 'absent'}, "
            f"and needs to be {one.required}"
            if one.rule in ("K8", "K11")
            else f"{one.other} ({one.product} {one.current}) needs {one.required}",
            value={
                "other": one.other,
                "product": one.product,
                "current": one.current or None,
                "required": one.required,
            },
        )
        for one in found
    )
    return refused(found[0].code, *reasons, cure=cure)
