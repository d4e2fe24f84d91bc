"""K13: what an installation requires is installed already, cycles aside."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.dependency_groups import ignores
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def required_first(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    entity, release = proposal.entity, proposal.release
    external = {one.product for one in world.settings.external_dependencies}
    missing = [
        one.product
        for one in (release.dependencies if release else ())
        if not one.optional
        and one.product not in external
        and not ignores(entity, one.product)
        and not _is_installed(world, proposal, one.product)
    ]
    missing = [product for product in missing if not world.tolerates(entity, product)]
    if not missing:
        return None
    reasons = (
        Reason(field="dependencies", problem=f"{one} is not installed yet", value={"product": one})
        for one in missing
    )
    return refused(FleetCode.DEPENDENCY_MISSING, *reasons, cure="install them first")


def _is_installed(world: World, proposal: Proposal, product: str) -> bool:
    return any(one.state.installed for one in world.providers(proposal.entity, product))


INSTALL_ORDER = Constraint(
    id="K13",
    title="required products are installed first",
    stage=Stage.ISSUE,
    rule=required_first,
    applies="IN",
    ignored="CM",
    who_can_act=("entity operator",),
)
