"""The release that an entity should go to: the newest on its channel that every constraint on
targets admits.

Releases that are recalled only for vulnerabilities are tried when no other can be used. Releases
without their artifacts are passed over once a plan to one of them was blocked for the time after
which plans are computed again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from temporal_plans.domain.fleets.codes import FleetCode
from temporal_plans.domain.fleets.constraints.artifacts import missing_artifacts
from temporal_plans.domain.fleets.constraints.record import Constraint
from temporal_plans.domain.fleets.decisions import REJECTED_LIMIT
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.judgement import Finding, findings
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.recalls import RecallCause
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.suppressions import first_time
from temporal_plans.domain.fleets.versions import parse_version
from temporal_plans.domain.fleets.world import World


@dataclass(frozen=True, slots=True)
class RejectedRelease:
    """A release with the constraints that it does not meet."""

    proposal: Proposal
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen target, or ``code`` for why there was none to reject. ``next_change`` is when time
    alone may change the choice."""

    chosen: Proposal | None
    rejected: tuple[RejectedRelease, ...] = ()
    code: FleetCode | None = None
    next_change: datetime | None = None


def choose(
    entity: Entity,
    intent: Intent,
    world: World,
    now: datetime,
    constraints: Sequence[Constraint],
) -> Choice:
    """Return the target of an installation, an upgrade or a roll-off."""
    catalogue = world.catalogue(entity)
    releases = catalogue.channel(world.channel(entity)) if catalogue else ()
    if not releases:
        return Choice(None, code=FleetCode.CHANNEL_EMPTY)
    back = all(one.roll_off.allow_downgrade for one in world.recalls(entity, entity.state.version))
    wanted = _candidates(entity, intent, releases, back=back)
    if not wanted:
        return Choice(None, code=_nothing_newer(entity, releases[0]))
    candidates = _Candidates(entity, intent, wanted)
    if _passes_over(entity, world, now):
        choice = _with_artifacts(candidates, world, now, constraints)
        if choice is not None:
            return choice
    chosen, rejected = _first(candidates, world, now, constraints)
    if chosen is None and world.settings.vulnerability_upgrades and intent is not Intent.INSTALL:
        return _least_vulnerable(candidates, rejected, world, now, constraints)
    return Choice(chosen, rejected)


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Releases to try, newest first."""

    entity: Entity
    intent: Intent
    releases: Sequence[Release]

    def __iter__(self) -> Iterator[Proposal]:
        kind = PlanKind.INSTALL if self.intent is Intent.INSTALL else PlanKind.CHANGE_VERSION
        for one in self.releases:
            yield Proposal(self.entity, kind, self.intent, version=one.version, release=one)


def _candidates(
    entity: Entity, intent: Intent, releases: Sequence[Release], *, back: bool
) -> Sequence[Release]:
    """Return the releases to try, newest first: the newer ones, of a roll-off that may go back all
    others, of an installation all."""
    current = parse_version(entity.state.version) if entity.state.version else None
    key = current.key if current else None
    if key is None:
        return releases
    forward = intent is Intent.UPGRADE or not back
    found: list[Release] = []
    for release in releases:
        version = parse_version(release.version)
        order = version.key if version else None
        if forward and (order is None or order <= key):
            break
        if order != key:
            found.append(release)
    return found


def _nothing_newer(entity: Entity, newest: Release) -> FleetCode:
    current = parse_version(entity.state.version) if entity.state.version else None
    head = parse_version(newest.version)
    if current is None or head is None or current.key is None or head.key is None:
        return FleetCode.NO_NEWER_RELEASE
    if head.key < current.key:
        return FleetCode.AHEAD_OF_CHANNEL
    return FleetCode.UP_TO_DATE if head.text == current.text else FleetCode.NO_NEWER_RELEASE


def _first(
    candidates: Iterable[Proposal],
    world: World,
    now: datetime,
    constraints: Sequence[Constraint],
) -> tuple[Proposal | None, tuple[RejectedRelease, ...]]:
    rejected: list[RejectedRelease] = []
    for candidate in candidates:
        shown = len(rejected) < REJECTED_LIMIT
        found = findings(candidate, world, now, constraints, all_of_them=shown)
        if not found:
            return candidate, tuple(rejected)
        rejected.append(RejectedRelease(candidate, found))
    return None, tuple(rejected)


def _least_vulnerable(
    candidates: Iterable[Proposal],
    rejected: Sequence[RejectedRelease],
    world: World,
    now: datetime,
    constraints: Sequence[Constraint],
) -> Choice:
    """Return the choice among releases that are recalled only for vulnerabilities."""
    final = {one.proposal.version: one for one in rejected}
    changes: list[datetime | None] = []
    for candidate in candidates:
        recalls = world.recalls(candidate.entity, candidate.version)
        if not recalls or any(one.cause is not RecallCause.VULNERABILITY for one in recalls):
            continue
        vulnerable = replace(candidate, vulnerable=True)
        found = findings(vulnerable, world, now, constraints)
        changes += [one.next_change(vulnerable, world, now) for one in constraints]
        if not found:
            others = (one for one in rejected if one.proposal.version != candidate.version)
            return Choice(vulnerable, tuple(others), next_change=first_time(changes))
        final[candidate.version] = RejectedRelease(vulnerable, found)
    return Choice(None, tuple(final.values()), next_change=first_time(changes))


def expired(entity: Entity, world: World, now: datetime) -> bool:
    """Return whether the waiting plan was blocked for so long that it is computed again."""
    plan = entity.state.proposed_plan
    if plan is None or plan.blocked_since is None:
        return False
    return now >= plan.blocked_since + world.settings.recompute_after


def _passes_over(entity: Entity, world: World, now: datetime) -> bool:
    plan = entity.state.proposed_plan
    return plan is not None and (bool(plan.skipped) or expired(entity, world, now))


def _with_artifacts(
    candidates: _Candidates,
    world: World,
    now: datetime,
    constraints: Sequence[Constraint],
) -> Choice | None:
    """Return the choice among releases whose artifacts are not missing; None when none is left out,
    or no other can be used."""
    missing = {one.version for one in candidates.releases if missing_artifacts(world, one)}
    if not missing:
        return None
    present = [one for one in candidates.releases if one.version not in missing]
    rest = replace(candidates, releases=present)
    chosen, rejected = _first(rest, world, now, constraints)
    if chosen is None:
        return None
    versions = [one.version for one in candidates.releases]
    newer = versions[: versions.index(chosen.version or "")]
    skipped = tuple(version for version in newer if version in missing)
    return Choice(replace(chosen, skipped=skipped), rejected)
