"""Messages about promotions: what people ask of products, and what environments report to them."""

from enum import StrEnum

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.environment import Connection
from temporal_plans.domain.fleets.names import (
    EntityName,
    EnvironmentName,
    ProductName,
    ShortName,
)
from temporal_plans.domain.fleets.promotion.canary_standing import CanaryStanding
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.decisions import PromotionDecision
from temporal_plans.domain.fleets.promotion.labels import LabelValues
from temporal_plans.domain.fleets.promotion.pipelines import PipelineOptions
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.soak import Condition
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.fleets.versions import OrderableVersion, VersionText
from temporal_plans.domain.fleets.windows import Window
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.declarations import ENTITIES_LIMIT, Schedule
from temporal_plans.messages.fleets.requests import FleetRequest

CHANNELS_LIMIT = 1000
"""Channels with rules that a product knows."""


# --- from people ----------------------------------------------------------------------------------


class SetPipeline(FleetRequest, CompressibleValue):
    """Update ``pipeline``: how the releases of the product are promoted; None: not at all."""

    pipeline: PipelineOptions | None


class SetChannel(FleetRequest, CompressibleValue):
    """Update ``channel``: what a release needs to come to a channel."""

    channel: Channel


class PromoteRelease(FleetRequest):
    """Update ``promote``: a release comes to channels, whatever it waits for; but it must have the
    labels that they need. There is exactly one way to name them: ``channels``; those that have the
    release ``like``; those of the pipeline on the way ``up_to`` a channel, and it; or
    ``whole_pipeline``."""

    version: OrderableVersion
    channels: tuple[ShortName, ...] = Field(default=(), max_length=50)
    like: OrderableVersion | None = None
    up_to: ShortName | None = None
    whole_pipeline: bool = False


class PromotionVerb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"


class SteerPromotion(FleetRequest):
    """Update ``steer``: pause, resume or cancel the promotion of a release in a stage. ``source``
    is needed only where several stages lead to ``target``."""

    verb: PromotionVerb
    version: VersionText
    target: ShortName
    source: ShortName | None = None


class ExplainRelease(CompactValue):
    """Argument of the query ``explain``: a release at a time."""

    version: str = Field(max_length=200)
    at: AwareDatetime


class StageExplanation(CompactValue):
    """A release in a stage: what is decided of it, and how each canary with it stands."""

    decision: PromotionDecision
    canaries: tuple[CanaryStanding, ...] = ()


class ReleaseExplanation(CompressibleValue):
    """Answer of the query ``explain``: a release, the active recalls that cover it, and the stages
    of the pipeline that it has not passed."""

    product: ProductName
    at: AwareDatetime
    release: Release
    recalls: tuple[Recall, ...] = ()
    stages: tuple[StageExplanation, ...] = ()


# --- from environments ----------------------------------------------------------------------------


class CanaryState(CompactValue):
    """How an entity is; ``known_at``: since when, as far as is known."""

    entity: EntityName
    channel: ShortName
    version: VersionText | None = None
    condition: Condition = Condition.HEALTHY
    known_at: Time


class CanaryReports(CompressibleValue):
    """Update ``canaries`` from an environment: the entities that are others than in its report
    before, and those that are ``gone``. Reports of a run of the environment, which began at
    ``epoch``, are numbered from 1; the first of a run is ``complete``."""

    environment: EnvironmentName
    labels: LabelValues = {}
    connection: Connection = Connection.CONNECTED
    epoch: AwareDatetime
    number: int = Field(ge=1)
    complete: bool = False
    entities: tuple[CanaryState, ...] = Field(default=(), max_length=ENTITIES_LIMIT)
    gone: tuple[EntityName, ...] = Field(default=(), max_length=ENTITIES_LIMIT)

    def reports(self) -> tuple[EntityReport, ...]:
        """Return the reports as promotions take them."""
        return tuple(
            EntityReport(
                environment=self.environment,
                entity=one.entity,
                environment_labels=self.labels,
                connection=self.connection,
                channel=one.channel,
                version=one.version,
                condition=one.condition,
                reported_at=one.known_at,
            )
            for one in self.entities
        )


class CanaryAnswer(CompactValue):
    """Answer of the update ``canaries``. ``send_all``: a report before it is missing."""

    send_all: bool = False


class ReportCanaries(CompressibleValue):
    """Input of the activity ``report_canaries``."""

    product: ProductName
    reports: CanaryReports


# --- between a product and its activities ---------------------------------------------------------


class ChannelRules(CompressibleValue):
    """Answer of the query ``channels`` and result of the activity ``known_channels``: the channels
    with rules that a product knows."""

    channels: tuple[Channel, ...] = ()


class KnownChannels(CompactValue):
    """Input of the activity ``known_channels`` from a product that begins."""

    product: ProductName


class ReadProduct(CompactValue):
    """Input of the activity ``read_product``."""

    maintenance_window: Schedule | None = None
    now: AwareDatetime


class ProductWindows(CompressibleValue):
    """Result of the activity ``read_product``: the absolute intervals of the product's window, and
    of the weekdays in its time zone, as far as ``until``."""

    window: Window | None = None
    weekdays: Window
    until: AwareDatetime
