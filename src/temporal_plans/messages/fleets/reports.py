"""What plans and other systems report of entities."""

from typing import Annotated

from pydantic import Field

from temporal_plans.domain.fleets.entities import Health
from temporal_plans.domain.fleets.environment import EnvironmentFacts
from temporal_plans.domain.fleets.names import EntityName, EnvironmentName, ShortName, Text
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, WorkflowId
from temporal_plans.messages.fleets.declarations import ENTITIES_LIMIT
from temporal_plans.messages.fleets.requests import FleetRequest
from temporal_plans.messages.malformed import SignalArgument


class ReportFacts(FleetRequest, CompressibleValue):
    """Update ``report``: what other systems know. What is not given stays as it is."""

    facts: EnvironmentFacts | None = None
    entities: dict[EntityName, "EntityFacts"] = Field(default={}, max_length=ENTITIES_LIMIT)


class EntityFacts(CompactValue):
    """What other systems know of an entity. ``version``: what is installed, where no plan of this
    environment put it there."""

    version: VersionText | None = None
    health: Health | None = None
    health_message: Text | None = None
    all_live: bool | None = None
    data_schema: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    pending_secrets: tuple[ShortName, ...] | None = Field(default=None, max_length=100)


class EntityReport(SignalArgument):
    """Signal ``reported`` from a plan's last phase: what is installed now. ``health`` is what
    its kind knows of it then; None where the kind can't tell."""

    entity: str = Field(default="", max_length=100)
    number: int = 0
    health: Health | None = None
    message: Text = ""


class ReportEntity(CompactValue):
    """Input of the activity ``report_entity``. ``owner`` is the workflow that follows the plan,
    where that is not the environment."""

    environment: EnvironmentName
    report: EntityReport
    owner: WorkflowId = ""
