"""Releases of a product: what a release needs, and what it says about its own change."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from temporal_plans.domain.fleets.names import ProductName, ShortName
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionBound, VersionText
from temporal_plans.domain.values.model import Value

ArtifactUri = Annotated[str, StringConstraints(min_length=1, max_length=500)]


class Dependency(Value):
    """Another product, with the range of its versions that a release works with."""

    product: ProductName = Field(description="The product that is needed, `group:name`.")
    minimum_version: OrderableVersion | None = Field(
        default=None, description="The oldest version in range, inclusive; open without it."
    )
    maximum_version: VersionBound | None = Field(
        default=None,
        description="The newest version in range: `1.2.3`, `1.2.x`, `1.x.x` or `x.x.x`; open "
        "without it.",
    )
    optional: bool = Field(
        default=False,
        description="The product may be absent; when it is installed it must be in range.",
    )


class Incompatibility(Value):
    """Versions of another product that may not be installed beside a release."""

    product: ProductName = Field(description="The other product, `group:name`.")
    minimum_version: OrderableVersion | None = Field(
        default=None, description="The oldest incompatible version, inclusive; open without it."
    )
    maximum_version: VersionBound | None = Field(
        default=None, description="The newest incompatible version; open without it."
    )


class Migration(Value):
    """A migration of stored data from one schema number to the next."""

    type: Literal["online", "offline"] = Field(
        description="`offline`: a change of the version that crosses it, up or down, needs "
        "downtime."
    )
    from_: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        validation_alias="from",
        serialization_alias="from",
        description="The schema number that it starts from.",
    )


class UpgradeStrategy(StrEnum):
    ROLLING = "rolling"
    SHUTDOWN = "shutdown"


class Quorum(StrEnum):
    ALL = "all"
    ALL_BUT_ONE = "all-but-one"
    SIMPLE_MAJORITY = "simple-majority"
    ANY = "any"

    def needed(self, replicas: int) -> int:
        """Return how many replicas must run for the service to be available."""
        match self:
            case Quorum.ALL:
                return replicas
            case Quorum.ALL_BUT_ONE:
                return max(replicas - 1, 1)
            case Quorum.SIMPLE_MAJORITY:
                return replicas // 2 + 1
            case Quorum.ANY:
                return 1


class Scan(Value):
    """What a scanner of vulnerabilities found in a release."""

    scanned_at: Time = Field(description="When the scan was made.")
    risk: Annotated[float, Field(ge=0, le=10)] = Field(description="The risk score, 0 to 10.")
    malware: bool = Field(default=False, description="Whether malware was found.")


class Release(Value):
    """An immutable version of a product."""

    version: VersionText = Field(description="The version, such as `1.2.3` or `1.2.3-rc1`.")
    channels: tuple[ShortName, ...] = Field(
        default=(), max_length=50, description="The channels that have the release."
    )
    published_at: Time | None = Field(
        default=None, description="When it was published; decides between equally old snapshots."
    )
    labels: dict[ShortName, Annotated[str, StringConstraints(max_length=200)]] = Field(
        default={}, max_length=100, description="Labels, which channels and pipelines may require."
    )
    dependencies: tuple[Dependency, ...] = Field(
        default=(), max_length=100, description="Products that it needs."
    )
    incompatibilities: tuple[Incompatibility, ...] = Field(
        default=(), max_length=100, description="Products that may not be installed beside it."
    )
    artifacts: tuple[ArtifactUri, ...] = Field(
        default=(), max_length=100, description="Images and other artifacts that it needs."
    )
    upgrade_strategy: UpgradeStrategy = Field(
        default=UpgradeStrategy.ROLLING,
        description="`shutdown`: all replicas stop together, so that a change needs downtime.",
    )
    quorum: Quorum = Field(
        default=Quorum.ALL_BUT_ONE,
        description="How many replicas must run for the service to be available.",
    )
    schema_migrations: tuple[Migration, ...] = Field(
        default=(), max_length=1000, description="Schemas of stored data that it can migrate from."
    )
    scan: Scan | None = Field(default=None, description="Its last vulnerability scan.")
