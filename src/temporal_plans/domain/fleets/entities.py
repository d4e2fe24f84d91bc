"""Entities: one installed, or to be installed, service of a product in an environment."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from temporal_plans.domain.fleets.names import EntityName, ProductName, Revision, ShortName, Text
from temporal_plans.domain.fleets.plans import (
    ActivePlan,
    Command,
    EndedPlan,
    EntityConfig,
    EntityVersion,
    FailureCount,
    ProposedPlan,
)
from temporal_plans.domain.fleets.promotion.soak import Soak
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.values.model import Value

EntityKind = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=100)]
"""``service``, ``package``, ``plan``, or a kind that developers register."""


class ConfigRestart(StrEnum):
    """What a change of a configuration alone does to the replicas."""

    ROLLING = "rolling"
    SHUTDOWN = "shutdown"
    LIVE = "live"


class ConfigBlock(Value):
    """The configuration for the versions from its key to the next major version."""

    revision: Revision
    restart: ConfigRestart = ConfigRestart.ROLLING


ALL_GROUPS = "*"
"""Stands for every dependency group."""

DEFAULT_GROUPS = ("default",)


class EntityOptions(Value):
    """How an entity is managed: the part that documents and decisions share."""

    product: ProductName = Field(description="The product, `group:name`.")
    kind: EntityKind = Field(
        default="service",
        description="What carries its plans out: `service`, `package`, `plan`, or a kind that "
        "developers register.",
    )
    release_channel: ShortName | None = Field(
        default=None, description="The channel that it follows; without it the environment's."
    )
    downtime_window: ShortName | None = Field(
        default=None,
        description="The maintenance window for changes with downtime; without it the "
        "environment's.",
    )
    no_downtime_window: ShortName | None = Field(
        default=None,
        description="The maintenance window for changes without downtime; without it the "
        "environment's.",
    )
    dependency_groups: tuple[ShortName, ...] = Field(
        default=DEFAULT_GROUPS, max_length=50, description="The groups that it is in."
    )
    dependency_group_overrides: dict[ProductName, tuple[str, ...]] = Field(
        default={},
        max_length=100,
        description="For a product that it depends on, the groups in which to look for it, instead "
        "of its own; `*` is any.",
    )
    ignored_dependencies: tuple[ProductName, ...] = Field(
        default=(), max_length=100, description="Products on which it does not depend after all."
    )
    uses_environment_config: bool = Field(
        default=True, description="Whether a change of the environment's configuration concerns it."
    )
    replicas: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=2, description="How many replicas it has; decides whether a change needs downtime."
    )
    downtime: bool | None = Field(
        default=None,
        description="Whether changes of version or configuration need downtime; without it the "
        "release decides.",
    )
    uninstall: bool = Field(default=False, description="Marked for uninstall.")
    uninstall_minimum_version: OrderableVersion | None = Field(
        default=None, description="Uninstall only from this version on."
    )
    namespace: ShortName | None = Field(
        default=None, description="The namespace of a package entity."
    )
    delete_namespace: bool = Field(
        default=False,
        description="Uninstall a package entity only while its namespace could be deleted: it is "
        "not protected, and nothing else is installed in it. The namespace itself stays.",
    )
    awaiting_approval: ShortName | None = Field(
        default=None,
        description="The change request that these settings wait for; nothing is planned before it "
        "is approved.",
    )


class EntitySettings(EntityOptions):
    """How an entity is managed, with the revisions of its configurations by the key."""

    config: dict[OrderableVersion, ConfigBlock] = {}


class Health(StrEnum):
    """The worst state of the replicas of an entity."""

    HEALTHY = "HEALTHY"
    DEFERRING = "DEFERRING"
    REPAIRING = "REPAIRING"
    WARNING = "WARNING"
    SUSPENDED = "SUSPENDED"
    TERMINAL = "TERMINAL"
    ERROR = "ERROR"


class EntityState(Value):
    """What is reported of an entity, and its plans."""

    product: ProductName | None = Field(
        default=None, description="The product of an entity without settings."
    )
    version: VersionText | None = Field(
        default=None, description="The installed version; without it nothing is installed."
    )
    config: EntityConfig = Field(default=EntityConfig(), description="The configuration in force.")
    health: Health | None = Field(default=None, description="The worst state of its replicas.")
    health_message: Text = Field(default="", description="What the failing check says.")
    all_live: bool = Field(default=True, description="Whether all its replicas are live.")
    soak: Soak | None = Field(
        default=None,
        description="How it was since it has its version, for promotions that test it.",
    )
    data_schema: Annotated[int, Field(ge=0, le=1_000_000)] | None = Field(
        default=None, description="The schema number of its stored data; without it unknown."
    )
    pending_secrets: tuple[ShortName, ...] = Field(
        default=(), max_length=100, description="Secrets that were edited and not applied yet."
    )
    command: Command | None = Field(default=None, description="The command that waits.")
    active_plan: ActivePlan | None = Field(default=None, description="The plan that runs.")
    proposed_plan: ProposedPlan | None = Field(default=None, description="The plan that waits.")
    last_plan: EndedPlan | None = Field(default=None, description="The last plan that ended.")
    last_number: int = Field(
        default=0, ge=0, le=2**31, description="The number of its last plan, of any kind."
    )
    failures: tuple[FailureCount, ...] = Field(
        default=(), max_length=100, description="How often plans failed, by version."
    )
    reported_at: Time | None = Field(default=None, description="When it was reported.")

    @property
    def installed(self) -> bool:
        return self.version is not None

    @property
    def current(self) -> EntityVersion:
        return EntityVersion.model_construct(version=self.version, config=self.config)


class Entity(Value):
    """An entity: unmanaged without settings."""

    name: EntityName
    settings: EntitySettings | None = None
    state: EntityState = EntityState()

    @property
    def product(self) -> str:
        """The product, empty when not even reported."""
        return self.settings.product if self.settings else self.state.product or ""
