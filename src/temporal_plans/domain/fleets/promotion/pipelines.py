"""Pipelines: how releases of a product go from channel to channel."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from temporal_plans.domain.fleets.environment import Connection
from temporal_plans.domain.fleets.names import EnvironmentName, ProductName, ShortName
from temporal_plans.domain.fleets.promotion.channels import DEFAULT_CHANNELS
from temporal_plans.domain.fleets.promotion.labels import LabelRequirements, meets
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.recalls import RollOff
from temporal_plans.domain.fleets.times import Time
from temporal_plans.domain.values.model import Duration, Value
from temporal_plans.domain.values.refusal import Reason

TIMED_LIMIT = timedelta(days=31)
CANARY_LIMIT = timedelta(days=13)
Ratio = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Percent = Annotated[float, Field(gt=0, le=100)]


class Timed(Value):
    """Promote after a time on the source channel."""

    soak: Duration = Field(
        description="How long a release is on the source channel before, up to 31 days; weekends "
        "do not count."
    )
    weekends: bool = Field(default=False, description="Weekends count as well.")
    labels: LabelRequirements = Field(
        default={}, description="Labels that the release needs, with their allowed values."
    )


class PromoteWhen(Value):
    """When canary entities are good enough. Either a count or a percentage."""

    count: Count | None = Field(default=None, description="How many entities.")
    percent: Percent | None = Field(default=None, description="How many of the canaries, 0 to 100.")
    soak: Duration = Field(
        description="How long each has had the release, up to 13 days; weekends do not count."
    )
    healthy: Ratio = Field(
        default=0.95, description="The part of that time in which it was healthy, at least."
    )


class RecallWhen(Value):
    """When canary entities are so bad that the release is recalled. Either a count or a
    percentage."""

    count: Count | None = Field(default=None, description="How many entities.")
    percent: Percent | None = Field(default=None, description="How many of the canaries, 0 to 100.")
    soak: Duration = Field(
        description="How long each has had the release, up to 13 days; weekends do not count."
    )
    unhealthy: Ratio = Field(
        default=0.05, description="The part of that time in which it was in error, if more."
    )
    roll_off: RollOff = Field(
        default=RollOff(), description="How entities leave the recalled release."
    )


class CanaryFilter(Value):
    """The environments of which entities are canaries; all that is given must hold."""

    labels: LabelRequirements = Field(
        default={}, description="Labels that the environment has, with their allowed values."
    )
    without_labels: LabelRequirements = Field(
        default={}, description="Labels that the environment does not have, with those values."
    )
    names: tuple[EnvironmentName, ...] = Field(
        default=(), max_length=10_000, description="Only these environments; without it any."
    )
    excluded: tuple[EnvironmentName, ...] = Field(
        default=(), max_length=10_000, description="Not these environments."
    )


class Canary(Value):
    """Promote when entities that follow the source channel are healthy with the release."""

    environments: CanaryFilter = Field(
        default=CanaryFilter(), description="Where the canary entities are; without it anywhere."
    )
    promote: PromoteWhen = Field(description="When the release is promoted.")
    recall: RecallWhen | None = Field(
        default=None, description="When it is recalled; without it never."
    )
    minimum_entities: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        default=0, description="Nothing is concluded unless there are more canaries than this."
    )
    labels: LabelRequirements = Field(
        default={}, description="Labels that the release needs, with their allowed values."
    )


class Stage(Value):
    """One step of a pipeline: ``timed`` or ``canary``."""

    source: ShortName = Field(description="The channel from which releases come.")
    target: ShortName = Field(description="The channel to which they are promoted.")
    timed: Timed | None = Field(default=None, description="Promote after a time.")
    canary: Canary | None = Field(default=None, description="Promote what canaries run well with.")


class PipelineOptions(Value):
    """How releases of a product are promoted."""

    product: ProductName = Field(description="The product, `group:name`.")
    enabled: bool = Field(default=True, description="Without it nothing is promoted by itself.")
    since: Time | None = Field(
        default=None,
        description="When it was enabled; releases that were on a channel before wait for canaries "
        "from then on.",
    )
    stages: tuple[Stage, ...] = Field(
        default=(), max_length=100, description="Its stages, in order; they may branch."
    )


class Pipeline(PipelineOptions):
    """The pipeline of one product."""


def is_canary(report: EntityReport, stage: Stage) -> bool:
    """Return whether an entity is among the canaries of a stage: it follows the source channel, in
    an environment that may take part."""
    if stage.canary is None or report.channel != stage.source:
        return False
    if report.connection not in (Connection.CONNECTED, Connection.RELAYED):
        return False
    wanted = stage.canary.environments
    if report.environment in wanted.excluded:
        return False
    if wanted.names and report.environment not in wanted.names:
        return False
    labels = report.environment_labels
    return all(meets(labels, *one) for one in wanted.labels.items()) and not any(
        meets(labels, *one) for one in wanted.without_labels.items()
    )


def pipeline_problems(pipeline: PipelineOptions) -> Iterator[Reason]:
    """Yield why a pipeline can't be used."""
    seen: set[tuple[str, str]] = set()
    for index, stage in enumerate(pipeline.stages):
        path = f"stages.{index}"
        if stage.target in DEFAULT_CHANNELS:
            yield Reason(
                field=f"{path}.target",
                problem="is a channel that releases come to when they are published only",
                value=stage.target,
                fix="use a channel of your own",
            )
        if stage.source == stage.target:
            yield Reason(field=f"{path}.target", problem="is the source", value=stage.target)
        if (stage.source, stage.target) in seen:
            text = f"there is another stage from {stage.source} to {stage.target}"
            yield Reason(field=path, problem=text, fix="remove one of them")
        seen.add((stage.source, stage.target))
        if (stage.timed is None) == (stage.canary is None):
            text = "must be either timed or canary"
            yield Reason(field=path, problem=text, fix="give one of: timed, canary")
        if stage.timed is not None:
            yield from _too_long(f"{path}.timed.soak", stage.timed.soak, TIMED_LIMIT)
        if stage.canary is not None:
            yield from _canary_problems(f"{path}.canary", stage.canary)


def _canary_problems(path: str, canary: Canary) -> Iterator[Reason]:
    for name, when in (("promote", canary.promote), ("recall", canary.recall)):
        if when is None:
            continue
        yield from _too_long(f"{path}.{name}.soak", when.soak, CANARY_LIMIT)
        if (when.count is None) == (when.percent is None):
            text = "must have either a count or a percentage"
            yield Reason(field=f"{path}.{name}", problem=text, fix="give one of: count, percent")


def _too_long(field: str, soak: timedelta, limit: timedelta) -> Iterator[Reason]:
    if soak < timedelta():
        yield Reason(field=field, problem="is negative", value=str(soak))
    elif soak > limit:
        fix = f"use {limit.days}d or less"
        yield Reason(field=field, problem="is too long", value=f"{soak.days}d", fix=fix)
