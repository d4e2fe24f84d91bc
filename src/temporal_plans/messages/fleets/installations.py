"""What the steps of plans tell the services and packages of entities."""

from typing import Any

from pydantic import Field

from temporal_plans.domain.fleets.names import (
    ClusterName,
    EntityName,
    EnvironmentName,
    ProductName,
    ShortName,
)
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.names import fleet_plan_id


class Installation(CompactValue):
    """Input of the activities that deploy, await and remove the service of an entity, with the
    release that it is to have, and the digest of its files. Without a digest (plans of former
    versions) the product is asked. The last three fields are of packages: where it is installed,
    and whether its own version may fall."""

    environment: EnvironmentName
    entity: EntityName
    product: ProductName
    version: VersionText | None = None
    config: dict[str, Any] = {}
    environment_config: dict[str, Any] = {}
    number: int = 0
    digest: str = Field(default="", max_length=64)
    cluster: ClusterName | None = None
    namespace: ShortName | None = None
    downgrade: bool = False

    @property
    def name(self) -> str:
        """The name of its service."""
        return f"{self.environment}.{self.entity}"

    @property
    def reason(self) -> str:
        """Why its service changes, for the service's log: the plan of the fleet."""
        return f"plan {fleet_plan_id(self.environment, self.entity, self.number)}"
