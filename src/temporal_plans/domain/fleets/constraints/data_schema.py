"""K12: the target can read the stored data."""

from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.record import Constraint, Stage, refused
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.refusal import Reason, Refusal


def readable(proposal: Proposal, world: World, _now: datetime, /) -> Refusal | None:
    """A release reads the schemas from the first that it migrates from to the one after the last.
    While the schema of the data is unknown, only going back to a release that starts from an older
    schema is refused."""
    release, entity = proposal.release, proposal.entity
    if release is None or not release.schema_migrations:
        return None
    first, last = _readable(release)
    schema = entity.state.data_schema
    if schema is not None:
        if first <= schema <= last:
            return None
        return _refusal(release, schema)
    current = world.release(entity, entity.state.version)
    if current is None or not current.schema_migrations or not _older(release, current):
        return None
    return _refusal(release, None) if first < _readable(current)[0] else None


def unknown_schema(proposal: Proposal, _world: World, _now: datetime, /) -> str:
    release = proposal.release
    if release is None or not release.schema_migrations:
        return ""
    known = proposal.entity.state.data_schema is not None or not proposal.entity.state.installed
    return "" if known else "the schema of the stored data is not reported"


def _readable(release: Release) -> tuple[int, int]:
    numbers = [step.from_ for step in release.schema_migrations]
    return min(numbers), max(numbers) + 1


def _older(one: Release, other: Release) -> bool:
    a, b = parse_version(one.version), parse_version(other.version)
    return a is not None and b is not None and (a.key or ()) < (b.key or ())


def _refusal(release: Release, schema: int | None) -> Refusal:
    first, last = _readable(release)
    found = "that may be newer" if schema is None else f"of schema {schema}"
    reason = Reason(
        field="data-schema",
        problem=f"{release.version} reads schemas {first} to {last}, not data {found}",
        value={"version": release.version, "first": first, "last": last, "schema": schema},
    )
    return refused(FleetCode.SCHEMA_UNSUPPORTED, reason, cure="go through a release in between")


DATA_SCHEMA = Constraint(
    id="K12",
    title="the stored data can be read",
    stage=Stage.TARGET,
    rule=readable,
    applies="IN UP RO RB",
    ignored="CM",
    unchecked=unknown_schema,
    who_can_act=("product editor",),
)
