"""K14: no artifact of the target is known to be missing."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.environment import ArtifactState
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def available(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    missing = missing_artifacts(world, proposal.release)
    if not missing:
        return None
    reasons = (
        Reason(field="artifacts", problem=f"{uri} is unavailable", value={"uri": uri})
        for uri in missing
    )
    return refused(FleetCode.ARTIFACT_UNAVAILABLE, *reasons, cure="push them to the registry")


def missing_artifacts(world: World, release: Release | None) -> tuple[str, ...]:
    """Return the artifacts of a release that are known to be unavailable."""
    states = world.facts.artifacts
    if release is None or not states:
        return ()
    return tuple(uri for uri in release.artifacts if states.get(uri) is ArtifactState.UNAVAILABLE)


def not_probed(proposal: Proposal, world: World, _now: datetime, /) -> str:
    """Artifacts that no registry of the environment was asked for do not hold a plan back."""
    states = world.facts.artifacts
    unknown = [
        uri
        for uri in (proposal.release.artifacts if proposal.release else ())
        if states.get(uri, ArtifactState.UNCHECKED) is ArtifactState.UNCHECKED
    ]
    return f"not checked: {', '.join(unknown)}" if unknown else ""


ARTIFACTS = Constraint(
    id="K14",
    title="artifacts are available",
    stage=Stage.ISSUE,
    rule=available,
    applies="IN UP RO",
    ignored="RB CM",
    unchecked=not_probed,
    who_can_act=("product editor", "environment editor"),
)
