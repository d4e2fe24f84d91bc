"""Answers of the queries of a product."""

from pydantic import AwareDatetime

from temporal_plans.domain.fleets.products import Admission, Ramp
from temporal_plans.domain.fleets.promotion.channels import Channel
from temporal_plans.domain.fleets.promotion.decisions import EntityUnderTest, PromotionDecision
from temporal_plans.domain.fleets.promotion.pipelines import Pipeline
from temporal_plans.domain.fleets.promotion.runs import StageRun
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.versions import VersionText
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.fleets.declarations import ProductDeclaration
from temporal_plans.messages.fleets.payloads import KeptFiles


class ReleaseQuery(CompactValue):
    """Argument of the query ``release``."""

    version: VersionText


class ReleaseRecord(CompactValue):
    """Answer of the query ``release``; without a release there is none of the version."""

    release: Release | None = None
    files: KeptFiles = KeptFiles()


class ReleaseRow(CompactValue):
    """A release in a list. ``recalls`` are the ids of the active recalls that cover it."""

    version: str
    channels: tuple[str, ...] = ()
    published_at: AwareDatetime | None = None
    recalls: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class ProductView(CompressibleValue):
    """Answer of the query ``status`` of a product, newest release first. ``promotions``: what was
    decided last of each release in a stage of the pipeline."""

    name: str
    declared: bool = False
    revision: int = 0
    environments: tuple[str, ...] = ()
    releases: tuple[ReleaseRow, ...] = ()
    recalls: tuple[Recall, ...] = ()
    ramps: tuple[Ramp, ...] = ()
    pipeline: Pipeline | None = None
    channels: tuple[Channel, ...] = ()
    promotions: tuple[PromotionDecision, ...] = ()
    tests: tuple[EntityUnderTest, ...] = ()
    next_wakeup: AwareDatetime | None = None
    problems: tuple[str, ...] = ()


class ProductExport(CompressibleValue):
    """Answer of the query ``export``: what documents of the product, its pipeline and its channels
    would say."""

    product: ProductDeclaration
    releases: tuple[Release, ...] = ()
    recalls: tuple[Recall, ...] = ()
    ramps: tuple[Ramp, ...] = ()
    admissions: tuple[Admission, ...] = ()
    promotions: tuple[StageRun, ...] = ()
    pipeline: Pipeline | None = None
    channels: tuple[Channel, ...] = ()
