"""How a canary stands in a stage, for people: which one keeps a release from being promoted."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from pydantic import AwareDatetime, Field

from temporal_plans.domain.fleets.promotion.pipelines import Stage, is_canary
from temporal_plans.domain.fleets.promotion.soak import Condition, Measured
from temporal_plans.domain.fleets.promotion.state import ProductState
from temporal_plans.domain.values.model import Duration, Value


class CanaryStanding(Value):
    """A canary of a stage. ``healthy`` and ``unhealthy``: whether it counts as one or the other
    now; ``left``: how much of the soak is missing."""

    environment: str = Field(description="Its environment.")
    entity: str = Field(description="Its name.")
    version: str | None = Field(default=None, description="The version that it has.")
    condition: Condition = Field(description="How it is now.")
    since: AwareDatetime | None = Field(
        default=None, description="Since when it has the release; without it it is not known."
    )
    soaked: Duration = Field(
        default=timedelta(), description="How long it has the release, weekends aside."
    )
    left: Duration = Field(default=timedelta(), description="How much of the soak is missing.")
    healthy: bool = Field(default=False, description="It has soaked and is healthy.")
    unhealthy: bool = Field(default=False, description="It was in error for too long.")


def canary_standings(
    state: ProductState, source: str, target: str, version: str, now: datetime
) -> Iterator[CanaryStanding]:
    """Yield the canaries of a stage by name, as they stand with a release."""
    stages = state.pipeline.stages if state.pipeline else ()
    for stage in stages:
        if (stage.source, stage.target) == (source, target):
            yield from _standings(state, stage, version, now)


def _standings(
    state: ProductState, stage: Stage, version: str, now: datetime
) -> Iterator[CanaryStanding]:
    canary, weekdays = stage.canary, state.weekdays(now)
    if canary is None:
        return
    for one in sorted(state.reports, key=lambda report: report.key):
        if not is_canary(one, stage):
            continue
        plain = CanaryStanding(
            environment=one.environment,
            entity=one.entity,
            version=one.version,
            condition=one.condition,
        )
        if one.version != version or one.soak is None:
            yield plain
            continue
        measured = Measured.of(one.soak, one.condition, now, weekdays)
        promote, recall = canary.promote, canary.recall
        yield plain.but(
            since=one.soak.since,
            soaked=measured.passed,
            left=max(promote.soak - measured.passed, timedelta()),
            healthy=measured.is_healthy(promote.soak, promote.healthy),
            unhealthy=recall is not None and measured.is_unhealthy(recall.soak, recall.unhealthy),
        )
