"""Requests about the plans of an entity."""

from temporal_plans.domain.fleets.names import EntityName
from temporal_plans.domain.fleets.plans import CommandType, EndStatus
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.model import Duration
from temporal_plans.messages.fleets.requests import FleetRequest


class CancelPlans(FleetRequest):
    """Update ``cancel``: the running plan of an entity, or all; where none of the entity runs, the
    command that waits for it. ``suppress`` keeps the same plan from being issued again for so long.
    ``command``: only the command; the plan goes on, and nothing is suppressed."""

    entity: EntityName | None = None
    suppress: Duration | None = None
    command: bool = False


class ResolvePlan(FleetRequest):
    """Update ``resolve``: how a plan ended of which nothing is known. ``version``: what is
    installed now; without it what the plan led to, or for another outcome what was there before;
    ``nothing_installed``: nothing is."""

    entity: EntityName
    outcome: EndStatus
    version: VersionText | None = None
    nothing_installed: bool = False


class FleetCommand(FleetRequest):
    """Update ``command``: a break-glass command to an entity."""

    entity: EntityName
    command: CommandType
    version: VersionText | None = None
