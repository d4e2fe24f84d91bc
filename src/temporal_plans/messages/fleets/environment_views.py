"""Answers of the queries of an environment."""

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.spokes import SpokeStanding
from temporal_plans.domain.fleets.standing import EntityStanding
from temporal_plans.domain.fleets.suppressions import Suppression, WindowOverride
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue


class StatusRow(CompactValue):
    """An entity in the table of an environment."""

    environment: str
    entity: str
    product: str
    kind: str = ""
    standing: EntityStanding
    plan_id: str = ""
    plan_status: str = ""


class EnvironmentStatus(CompressibleValue):
    """Answer of the query ``status``."""

    name: str
    connection: str
    rows: tuple[StatusRow, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    overrides: tuple[WindowOverride, ...] = ()
    next_wakeup: AwareDatetime | None = None
    problems: tuple[str, ...] = ()
    spoke: SpokeStanding | None = None


class ExplainEntity(CompactValue):
    """Argument of the query ``explain``: an entity at a time."""

    entity: str = Field(max_length=200)
    at: AwareDatetime
