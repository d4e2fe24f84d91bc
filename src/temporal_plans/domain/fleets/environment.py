"""Environments: a place where entities run, with its rules and facts."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from temporal_plans.domain.fleets.approvals import Approvals
from temporal_plans.domain.fleets.entities import Entity
from temporal_plans.domain.fleets.names import (
    ClusterName,
    EnvironmentName,
    ProductName,
    Revision,
    ShortName,
)
from temporal_plans.domain.fleets.products import Product
from temporal_plans.domain.fleets.promotion.labels import LabelValues
from temporal_plans.domain.fleets.releases import ArtifactUri
from temporal_plans.domain.fleets.suppressions import Suppression, WindowOverride
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.fleets.windows import ALL_TIME, ALL_TIME_NAME, Window
from temporal_plans.domain.values.model import Duration, Value


class Connection(StrEnum):
    """Whether agents of an environment connect."""

    UNKNOWN = "unknown"
    CONNECTED = "agents-connected"
    NOT_EXPECTED = "no-connection-expected"
    RELAYED = "relayed"


class ArtifactState(StrEnum):
    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"
    UNCHECKED = "unchecked"


class ExternalProvider(Value):
    """A product that is there without being an entity."""

    product: ProductName = Field(description="The product, `group:name`.")
    version: VersionText = Field(description="Its version.")


class Namespace(Value):
    """A fact about a namespace."""

    protected: bool = Field(default=False, description="It may not be deleted.")


class EnvironmentOptions(Value):
    """The settings of an environment that documents and decisions share."""

    release_channel: ShortName = Field(
        default="stable", description="The channel of entities without one of their own."
    )
    spoke: bool = Field(
        default=False,
        description="A spoke with a Temporal server of its own carries the plans out "
        "(`temporal-plan spoke`); without it they run on the server of the environment.",
    )
    override_product_maintenance_windows: bool = Field(
        default=False, description="Ignore the maintenance windows of products."
    )
    strict_environment_windows: bool = Field(
        default=False,
        description="Changes without downtime of a product with a window also need the "
        "environment's window.",
    )
    require_maintenance_windows_for_no_downtime_recalled_release_roll_offs: bool = Field(
        default=False,
        description="Leaving a recalled release without downtime needs a window as well.",
    )
    suppress_deployment_after_num_autosuppressions: (
        Annotated[int, Field(ge=0, le=100_000)] | None
    ) = Field(
        default=None,
        description="Stop all plans when more entities than this are suppressed after failures;"
        " without it never.",
    )
    count_origins: Literal["failures", "all"] = Field(
        default="failures",
        description="Which automatic suppressions the threshold counts; `all` counts those of "
        "promotions, too.",
    )
    failure_suppression: Duration = Field(
        default=timedelta(hours=4),
        description="How long a failed plan suppresses its entity the first time; then twice and "
        "six times as long, then until the target changes.",
    )
    recompute_after: Duration = Field(
        default=timedelta(hours=4),
        description="After how long a plan that is blocked is computed again.",
    )
    agent_timeout: Duration = Field(
        default=timedelta(minutes=10),
        description="After how long without a report an agent gets no plans.",
    )
    max_active_plans: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="How many plans may run at once; without it any number."
    )
    vulnerability_upgrades: bool = Field(
        default=False,
        description="Allow releases that are recalled only for vulnerabilities, where no other "
        "release can be used and the risk does not rise.",
    )
    scan_validity: Duration = Field(
        default=timedelta(hours=24),
        description="How long a vulnerability scan counts.",
    )
    cluster: ClusterName | None = Field(
        default=None,
        description="The Kubernetes cluster in which package entities are installed; without it "
        "`main`.",
    )
    namespace: ShortName | None = Field(
        default=None,
        description="The namespace of package entities without one of their own; without it "
        "`default`.",
    )
    approvals: Approvals = Field(
        default=Approvals(),
        description="Which changes become change requests, and who may approve them.",
    )
    labels: LabelValues = Field(
        default={}, description="Labels, by which stages of pipelines choose canaries."
    )
    external_dependencies: tuple[ExternalProvider, ...] = Field(
        default=(), max_length=1000, description="Products that are there without being entities."
    )


class EnvironmentSettings(EnvironmentOptions):
    """The settings of an environment, with its windows as absolute intervals by name."""

    windows: dict[ShortName, Window] = {}
    downtime_window: ShortName = ALL_TIME_NAME
    no_downtime_window: ShortName = ALL_TIME_NAME
    config_revision: Revision | None = None

    def window(self, name: str) -> Window:
        """Return a window by its name; one that is not known is closed."""
        return ALL_TIME if name == ALL_TIME_NAME else self.windows.get(name, Window())


class EnvironmentFacts(Value):
    """What is reported of an environment."""

    connection: Connection = Field(
        default=Connection.CONNECTED, description="Whether its agents connect."
    )
    agent_seen_at: Time | None = Field(
        default=None, description="When its agents last reported; without it that is not judged."
    )
    artifacts: dict[ArtifactUri, ArtifactState] = Field(
        default={}, max_length=10_000, description="Whether artifacts are there, by their address."
    )
    namespaces: dict[ShortName, Namespace] = Field(
        default={}, max_length=1000, description="Facts about namespaces."
    )


class Environment(Value):
    """An environment with everything in it."""

    name: EnvironmentName
    settings: EnvironmentSettings = EnvironmentSettings()
    facts: EnvironmentFacts = EnvironmentFacts()
    entities: tuple[Entity, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    overrides: tuple[WindowOverride, ...] = ()


class Snapshot(Value):
    """Everything that a decision about an environment needs."""

    environment: Environment
    products: tuple[Product, ...] = ()
