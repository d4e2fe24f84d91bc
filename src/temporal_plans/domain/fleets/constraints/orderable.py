"""K2: the target and the installed version have an order."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def orderable(proposal: Proposal, _world: World, _now: datetime, /) -> Refusal | None:
    for version in (proposal.version, proposal.entity.state.version):
        found = parse_version(version) if version is not None else None
        if version is not None and (found is None or not found.orderable):
            reason = Reason(
                field="version",
                problem="has no order among versions",
                value={"version": version},
                fix="publish a release, a candidate or a snapshot",
            )
            return refused(FleetCode.NON_ORDERABLE, reason)
    return None


ORDERABLE = Constraint(
    id="K2",
    title="versions have an order",
    stage=Stage.TARGET,
    rule=orderable,
    applies="IN UP RO",
    ignored="CM",
    who_can_act=("product editor",),
)
