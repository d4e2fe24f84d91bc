"""Why an entity is at the version that it has: every candidate release with the verdict of every
constraint about it, also where there is nothing to do."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from pydantic import Field

from temporal_plans.domain.fleets.constraints import CONSTRAINTS
from temporal_plans.domain.fleets.decide import decide
from temporal_plans.domain.fleets.decisions import Decision, Verdict, VerdictState
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.judgement import judge
from temporal_plans.domain.fleets.outlook import complete
from temporal_plans.domain.fleets.plans import Intent, PlanKind
from temporal_plans.domain.fleets.proposal import Proposal
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.threshold import threshold_change, with_change
from temporal_plans.domain.fleets.world import World
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue

CANDIDATES_LIMIT = 20
"""How many releases of the channel an explanation has, newest first."""


class Candidate(CompactValue):
    """A release of the channel that an entity follows, as a target of it."""

    version: str
    installed: bool = False
    chosen: bool = Field(default=False, description="The plan leads to it.")
    verdicts: tuple[Verdict, ...] = ()

    @property
    def failed(self) -> tuple[Verdict, ...]:
        return tuple(one for one in self.verdicts if one.state is VerdictState.FAILED)


class Explanation(CompressibleValue):
    """The decision about an entity with the releases of its channel, newest first; ``count`` is how
    many those are in all. None for an entity without settings."""

    decision: Decision
    channel: str = ""
    candidates: tuple[Candidate, ...] = ()
    count: int = 0


def explained(world: World, name: str, now: datetime) -> Explanation | None:
    """Return why an entity is as it is; None when there is none of this name."""
    entity = world.entities.get(name)
    if entity is None:
        return None
    [decision] = decide(world, now, only={name}).decisions
    if entity.settings is None:
        return Explanation(decision=decision)
    catalogue, channel = world.catalogue(entity), world.channel(entity)
    releases = catalogue.channel(channel) if catalogue else ()
    change = threshold_change(world.environment, now)
    with world.trial(with_change(world.environment.suppressions, change)):
        found = tuple(_candidates(entity, _shown(entity, releases), decision, world, now))
    return Explanation(decision=decision, channel=channel, candidates=found, count=len(releases))


def _shown(entity: Entity, releases: Sequence[Release]) -> Sequence[Release]:
    """Return the newest releases, and the installed one."""
    newest = releases[:CANDIDATES_LIMIT]
    rest = releases[CANDIDATES_LIMIT:]
    return (*newest, *(one for one in rest if one.version == entity.state.version))


def _candidates(
    entity: Entity, releases: Sequence[Release], decision: Decision, world: World, now: datetime
) -> Iterator[Candidate]:
    intent, kind = Intent.UPGRADE, PlanKind.CHANGE_VERSION
    if not entity.state.installed:
        intent, kind = Intent.INSTALL, PlanKind.INSTALL
    elif world.recalls(entity, entity.state.version):
        intent = Intent.RECALL_ROLL_OFF
    target = decision.plan.to if decision.plan else None
    for release in releases:
        wanted = Proposal(entity, kind, intent, version=release.version, release=release)
        judgement = judge(complete(wanted, world), world, now, CONSTRAINTS)
        yield Candidate(
            version=release.version,
            installed=release.version == entity.state.version,
            chosen=release.version == target,
            verdicts=judgement.verdicts,
        )
