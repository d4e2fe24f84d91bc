"""The Product workflow: its state, and the requests to it."""

from collections.abc import Iterator

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.names import EnvironmentName, ProductName, ShortName
from temporal_plans.domain.fleets.products import Admission, Product, Ramp
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.decisions import EntityUnderTest
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline
from temporal_plans.domain.fleets.promotion.reports import EntityReport as CanaryReport
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.declarations import ProductDeclaration
from temporal_plans.messages.fleets.payloads import KeptFiles, ReleasePayload
from temporal_plans.messages.fleets.requests import FleetRequest
from temporal_plans.messages.plans import CommandLog

RELEASES_LIMIT = 10_000
FOLLOWERS_AT_ONCE = 1000
"""Environments that one request to follow a product may name beside the first."""


class Reporter(CompactValue):
    """The last report of an environment that a product took: that of a ``number`` from the run of
    the environment that began at ``epoch``."""

    epoch: AwareDatetime
    number: int


class ProductState(CompressibleValue):
    """What a Product carries from run to run.

    ``revision`` counts the changes that environments must hear of, ``announced`` is the last one
    that all ``followers`` heard of. ``files`` are those of each release by version.
    ``channels``, ``pipeline``, ``runs`` and ``reports`` are what promotions depend on
    (``domain.fleets.promotion``); ``tests`` are the entities that they test, ``untold`` the
    environments that must hear of a change of these. With a pipeline, ``product`` has its windows,
    which are known up to ``until``.
    """

    declaration: ProductDeclaration | None = None
    product: Product | None = None
    revision: int = 0
    announced: int = 0
    followers: tuple[EnvironmentName, ...] = ()
    files: dict[VersionText, KeptFiles] = {}
    channels: tuple[Channel, ...] = ()
    pipeline: Pipeline | None = None
    runs: tuple[StageRun, ...] = ()
    reports: tuple[CanaryReport, ...] = ()
    reporters: dict[EnvironmentName, Reporter] = {}
    tests: tuple[EntityUnderTest, ...] = ()
    untold: tuple[EnvironmentName, ...] = ()
    until: AwareDatetime | None = None
    log: CommandLog = CommandLog()

    def shorter_forms(self) -> Iterator["ProductState"]:
        yield self.but(log=CommandLog())


class ProductInput(CompactValue):
    """Input of the Product workflow."""

    name: ProductName
    history_limit: int = Field(default=2000, ge=50)
    state: ProductState | None = None


class ProductApply(FleetRequest, CompressibleValue):
    """Update ``apply``: what a document of the product says. Releases that are not there yet are
    published, without payload; ``recalls`` are added, or edited where one of the id is there.
    Without ``ramps`` those under way stay. ``admissions`` and ``promotions`` are taken for releases
    and stages of which the product knows none."""

    product: ProductDeclaration
    releases: tuple[Release, ...] = Field(default=(), max_length=RELEASES_LIMIT)
    recalls: tuple[Recall, ...] = Field(default=(), max_length=1000)
    ramps: tuple[Ramp, ...] = Field(default=(), max_length=1000)
    admissions: tuple[Admission, ...] = Field(default=(), max_length=100_000)
    promotions: tuple[StageRun, ...] = Field(default=(), max_length=100_000)


class Publish(FleetRequest, CompressibleValue):
    """Update ``publish``: a release with its files."""

    release: Release
    payload: ReleasePayload = ReleasePayload()


class RecallRelease(FleetRequest):
    """Update ``recall``: a recall begins, or the one of its id is edited."""

    recall: Recall


class RevertRecall(FleetRequest):
    """Update ``revert_recall``."""

    id: ShortName


class FollowProduct(CompactValue):
    """Update ``follow`` from an environment that has entities of the product; or no longer has.
    ``others`` ask the same."""

    environment: EnvironmentName
    others: tuple[EnvironmentName, ...] = Field(default=(), max_length=FOLLOWERS_AT_ONCE)
    follows: bool = True
