"""K7: a block of the entity's configuration covers the target."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.configuration import config_key
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def covered(proposal: Proposal, _world: World, _now: datetime, /) -> Refusal | None:
    """A rollback brings back the configuration that was in force before."""
    version = proposal.version
    if version is None or proposal.intent is Intent.ROLLBACK:
        return None
    if proposal.kind in (PlanKind.RESTART, PlanKind.CHANGE_SECRETS):
        return None
    if config_key(proposal.entity, version) is not None:
        return None
    found = parse_version(version)
    key = ".".join(map(str, found.base)) if found else version
    settings = proposal.entity.settings
    reason = Reason(
        field="config",
        problem=f"no block of configuration covers {version}",
        value={"version": version, "keys": sorted(settings.config) if settings else []},
        fix=f"add a block with the key {key}"
        if found is None or found.text == key
        else f"add a block with a key of major version {found.base[0]} not newer than {version}",
    )
    return refused(FleetCode.CONFIG_BLOCK_MISSING, reason)


CONFIGURATION = Constraint(
    id="K7",
    title="a block of configuration covers the version",
    stage=Stage.TARGET,
    rule=covered,
    applies="IN UP CF RO RB CM",
    who_can_act=("entity operator",),
)
