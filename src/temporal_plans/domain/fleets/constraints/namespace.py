"""K30: the namespace of an uninstalled package could be deleted: it is empty and not protected.

Nothing here deletes it; its owner may, after the uninstall.
"""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def deletable(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    """Concerns package entities whose settings ask for this check (``delete-namespace``)."""
    entity = proposal.entity
    settings = entity.settings
    if settings is None or settings.kind != "package" or not settings.delete_namespace:
        return None
    name = settings.namespace
    if name is None:
        return None
    reasons: list[Reason] = []
    fact = world.facts.namespaces.get(name)
    if fact is not None and fact.protected:
        problem = f"the namespace {name} is protected"
        reasons.append(Reason(field="namespace", problem=problem, value={"namespace": name}))
    reasons += [
        Reason(
            field="namespace",
            problem=f"{other.name} is installed in the namespace {name}",
            value={"namespace": name, "other": other.name},
        )
        for other in world.entities.values()
        if other.name != entity.name
        and other.state.installed
        and other.settings is not None
        and other.settings.namespace == name
    ]
    if not reasons:
        return None
    cure = "empty the namespace and remove its protection, or keep it"
    return refused(FleetCode.NAMESPACE_IN_USE, *reasons, cure=cure)


NAMESPACE = Constraint(
    id="K30",
    title="namespace can be deleted",
    stage=Stage.ISSUE,
    rule=deletable,
    applies="UN",
    who_can_act=("environment editor",),
)
