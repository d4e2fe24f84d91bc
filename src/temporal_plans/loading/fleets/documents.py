"""The documents of a fleet, as files have them: one kind a document."""

from typing import Any, Literal

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.decisions import Outcome
from temporal_plans.domain.fleets.entities import ConfigRestart, EntityOptions, EntityState
from temporal_plans.domain.fleets.environment import EnvironmentFacts, EnvironmentOptions
from temporal_plans.domain.fleets.events import FleetEvent
from temporal_plans.domain.fleets.names import (
    EntityName,
    EnvironmentName,
    ProductName,
    ShortName,
    Text,
)
from temporal_plans.domain.fleets.plans import Intent
from temporal_plans.domain.fleets.products import Admission, Ramp, Rollouts
from temporal_plans.domain.fleets.promotion.channels import ChannelOptions
from temporal_plans.domain.fleets.promotion.decisions import PromotionOutcome
from temporal_plans.domain.fleets.promotion.pipelines import PipelineOptions
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.suppressions import Suppression, WindowOverride
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.fleets.windows import ALL_TIME_NAME
from temporal_plans.domain.values.model import Duration, Value
from temporal_plans.loading.fleets.schedules import WeeklySchedule

ENTITIES_LIMIT = 20_000
RELEASES_LIMIT = 10_000


class ConfigBlockDocument(Value):
    """The configuration for the versions from its key to the next major version."""

    overrides: dict[str, Any] = Field(default={}, description="The configuration itself.")
    restart: ConfigRestart = Field(
        default=ConfigRestart.ROLLING,
        description="What a change of this block alone does: `live` restarts nothing, `shutdown` "
        "stops all replicas together.",
    )


class EntityDocument(EntityOptions):
    """How an entity is managed."""

    config: dict[OrderableVersion, ConfigBlockDocument] = Field(
        default={},
        max_length=1000,
        description="Blocks of configuration by the version from which on they hold, up to the next"
        " major version. A release that no block covers is never chosen.",
    )


class EnvironmentSettingsDocument(EnvironmentOptions):
    """The settings of an environment."""

    maintenance_windows: dict[ShortName, WeeklySchedule] = Field(
        default={}, max_length=1000, description="Weekly schedules by name."
    )
    downtime_window: ShortName = Field(
        default=ALL_TIME_NAME,
        description="The window for changes with downtime; `all-time` is always open.",
    )
    no_downtime_window: ShortName = Field(
        default=ALL_TIME_NAME, description="The window for changes without downtime."
    )


class EnvironmentDocument(Value):
    """An environment: a place where entities run, and the rules there."""

    kind: Literal["environment"] = Field(description="The kind of document.")
    name: EnvironmentName = Field(description="Its name: small letters, digits and hyphens.")
    settings: EnvironmentSettingsDocument = Field(
        default=EnvironmentSettingsDocument(), description="Its settings."
    )
    config: dict[str, Any] | None = Field(
        default=None, description="The configuration that all its entities use."
    )
    entities: dict[EntityName, EntityDocument] = Field(
        default={}, max_length=ENTITIES_LIMIT, description="Its entities by name."
    )


class ProductDocument(Value):
    """A product: a deployable component with its releases."""

    kind: Literal["product"] = Field(description="The kind of document.")
    name: ProductName = Field(description="`group:name`.")
    maintenance_window: WeeklySchedule | None = Field(
        default=None, description="When changes of its entities may begin."
    )
    releases: tuple[Release, ...] = Field(
        default=(), max_length=RELEASES_LIMIT, description="Its releases."
    )
    recalls: tuple[Recall, ...] = Field(default=(), max_length=1000, description="Its recalls.")
    ramps: tuple[Ramp, ...] = Field(
        default=(), max_length=1000, description="Ramped rollouts under way."
    )
    rollouts: Rollouts = Field(
        default={},
        description="Over how long upgrades to a new release are spread, by channel. A rollout "
        "under way keeps its length.",
    )
    admissions: tuple[Admission, ...] = Field(
        default=(),
        max_length=100_000,
        description="When releases came to channels; without an entry when they were published.",
    )
    promotions: tuple[StageRun, ...] = Field(
        default=(),
        max_length=100_000,
        description="What is remembered of promotions under way.",
    )


class ChannelDocument(ChannelOptions):
    """A channel: what a release needs to come to it. Channels without rules need no document."""

    kind: Literal["channel"] = Field(description="The kind of document.")
    name: ShortName = Field(description="Its name.")


class PipelineDocument(PipelineOptions):
    """The pipeline of a product: how its releases go from channel to channel."""

    kind: Literal["pipeline"] = Field(description="The kind of document.")


class EntityStateDocument(EntityState):
    """What is reported of an entity, and its plans."""

    config_overrides: dict[str, Any] | None = Field(
        default=None,
        description="The configuration in force, in the place of the revision in `config`.",
    )
    environment_config: dict[str, Any] | None = Field(
        default=None,
        description="The environment's configuration in force, in the place of the "
        "`environment-revision` in `config`.",
    )


class StateDocument(EnvironmentFacts):
    """What is reported of an environment and its entities."""

    kind: Literal["state"] = Field(description="The kind of document.")
    environment: EnvironmentName = Field(description="The environment.")
    entities: dict[EntityName, EntityStateDocument] = Field(
        default={}, max_length=ENTITIES_LIMIT, description="What is reported of each entity."
    )


class SuppressionsDocument(Value):
    """The suppressions of an environment, and the overrides of its maintenance windows."""

    kind: Literal["suppressions"] = Field(description="The kind of document.")
    environment: EnvironmentName = Field(description="The environment.")
    suppressions: tuple[Suppression, ...] = Field(
        default=(), max_length=10_000, description="Times without plans."
    )
    overrides: tuple[WindowOverride, ...] = Field(
        default=(), max_length=10_000, description="Times beside the maintenance windows."
    )


class ExpectedDecision(Value):
    """What a decision should be; what is not given is not compared."""

    outcome: Outcome | None = Field(default=None, description="The outcome.")
    code: str | None = Field(default=None, description="The first reason.")
    intent: Intent | None = Field(default=None, description="The intent of the plan.")
    to: VersionText | None = Field(default=None, description="The version that the plan leads to.")
    config_key: OrderableVersion | None = Field(
        default=None, description="The key of the plan's block of configuration."
    )
    downtime: bool | None = Field(default=None, description="Whether the plan needs downtime.")
    secrets: tuple[str, ...] | None = Field(
        default=None, description="The secrets that the plan applies."
    )
    skipped: tuple[str, ...] | None = Field(
        default=None, description="The versions that the plan passes over."
    )
    failed: dict[str, str] | None = Field(
        default=None, description="Constraints that do not hold, with their codes: all of them."
    )
    rejected: dict[VersionText, str] | None = Field(
        default=None, description="Releases that were not chosen, with their first codes: all."
    )
    waiting: Intent | None = Field(
        default=None, description="The intent of the plan that waits beside."
    )
    notes: tuple[str, ...] | None = Field(default=None, description="The codes of the remarks.")
    discarded: str | None = Field(
        default=None, description="Why the plan that waited is not wanted as it was."
    )
    cancel: str | None = Field(default=None, description="Why the running plan is to be cancelled.")
    next_evaluation_at: AwareDatetime | None = Field(
        default=None, description="When it is decided again."
    )


class ExpectedPromotion(Value):
    """What should be decided of a release in a stage; what is not given is not compared."""

    outcome: PromotionOutcome | None = Field(default=None, description="The outcome.")
    code: str | None = Field(default=None, description="The first reason.")
    failed: dict[str, str] | None = Field(
        default=None, description="Conditions that do not hold, with their codes: all of them."
    )
    healthy: int | None = Field(default=None, description="How many canaries are healthy.")
    unhealthy: int | None = Field(default=None, description="How many canaries are unhealthy.")
    next_evaluation_at: AwareDatetime | None = Field(
        default=None, description="When it is decided again."
    )


class ExpectationDocument(Value):
    """What `temporal plan fleet decide` should decide at a time."""

    kind: Literal["expectation"] = Field(description="The kind of document.")
    at: Time | None = Field(default=None, description="The time; without it that of `--at`.")
    description: Text = Field(default="", description="What is shown, for people.")
    decisions: dict[str, ExpectedDecision] = Field(
        default={}, description="Expected decisions by `<environment>/<entity>`."
    )
    promotions: dict[str, ExpectedPromotion] = Field(
        default={},
        description="Expected decisions of promotions by `<product>/<version>/<target channel>`.",
    )
    tests: tuple[str, ...] | None = Field(
        default=None,
        description="The entities that promotions test, `<environment>/<entity>`: all of them.",
    )


class EventsDocument(Value):
    """What happens during a simulation."""

    kind: Literal["events"] = Field(description="The kind of document.")
    plan_duration: Duration | None = Field(
        default=None, description="How long every plan takes; without it 10 minutes."
    )
    events: tuple[FleetEvent, ...] = Field(
        default=(), max_length=10_000, description="What happens, at its time."
    )


FleetDocument = (
    EnvironmentDocument
    | ProductDocument
    | ChannelDocument
    | PipelineDocument
    | StateDocument
    | SuppressionsDocument
    | ExpectationDocument
    | EventsDocument
)
DOCUMENTS: dict[str, type[FleetDocument]] = {
    "environment": EnvironmentDocument,
    "product": ProductDocument,
    "channel": ChannelDocument,
    "pipeline": PipelineDocument,
    "state": StateDocument,
    "suppressions": SuppressionsDocument,
    "expectation": ExpectationDocument,
    "events": EventsDocument,
}
"""The kinds of documents, as their ``kind`` names them."""
