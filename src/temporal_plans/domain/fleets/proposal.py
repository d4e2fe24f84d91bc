"""A proposal: a plan that may be made for an entity, as the constraints judge it."""

from dataclasses import dataclass

from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.plans import (
    UNKNOWN_CONFIG,
    Command,
    EntityConfig,
    EntityVersion,
    Intent,
    PlanKind,
)
from temporal_plans.domain.fleets.releases import Release


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan that may be made.

    ``version`` is what is installed after it (None: nothing), ``release`` what the catalogue has of
    that version. While targets are searched, ``config``, ``secrets`` and ``downtime`` are not set
    yet. ``vulnerable``: the target is judged by the rule for releases that are recalled for
    vulnerabilities. ``skipped`` are newer versions passed over for lack of artifacts.
    """

    entity: Entity
    kind: PlanKind
    intent: Intent
    version: str | None = None
    release: Release | None = None
    config: EntityConfig = UNKNOWN_CONFIG
    secrets: tuple[str, ...] = ()
    downtime: bool = False
    vulnerable: bool = False
    command: Command | None = None
    skipped: tuple[str, ...] = ()

    @property
    def to(self) -> EntityVersion:
        """What the plan leads to."""
        return EntityVersion.model_construct(version=self.version, config=self.config)

    def same_as(self, kind: PlanKind, intent: Intent, to: EntityVersion) -> bool:
        """Return whether a plan of this kind, intent and aim is the same plan."""
        return (self.kind, self.intent) == (kind, intent) and not self.to.differs(to)
