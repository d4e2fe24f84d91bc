"""Requests that hold plans back or let them begin: suppressions and overrides of windows."""

from temporal_plans.domain.fleets.names import EntityName, ShortName
from temporal_plans.domain.fleets.suppressions import WindowClass
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.values.model import Duration
from temporal_plans.messages.fleets.requests import FleetRequest

STOPS_LIMIT = 1000
"""Suppressions and overrides of an environment."""


class Suppress(FleetRequest):
    """Update ``suppress``: no plans for an entity, or for the whole environment, from ``start``
    (now) up to ``end`` or for ``duration``; without both until it is removed."""

    id: ShortName | None = None
    entity: EntityName | None = None
    start: Time | None = None
    end: Time | None = None
    duration: Duration | None = None
    cancel_active: bool = False


class Unsuppress(FleetRequest):
    """Update ``unsuppress``: remove a suppression, of any origin."""

    id: ShortName


class OverrideWindows(FleetRequest):
    """Update ``override``: open the maintenance windows from ``start`` (now) for ``duration``."""

    id: ShortName | None = None
    entity: EntityName | None = None
    admits: WindowClass = WindowClass.NO_DOWNTIME
    start: Time | None = None
    duration: Duration


class RemoveOverride(FleetRequest):
    """Update ``remove_override``."""

    id: ShortName
