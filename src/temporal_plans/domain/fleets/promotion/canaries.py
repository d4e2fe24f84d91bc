"""Stages that promote what canary entities run well with."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil

from temporal_plans.domain.fleets.decisions import Verdict
from temporal_plans.domain.fleets.promotion.codes import PromotionCode
from temporal_plans.domain.fleets.promotion.decisions import CanaryCount
from temporal_plans.domain.fleets.promotion.pipelines import (
    Canary,
    PromoteWhen,
    RecallWhen,
)
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.promotion.review import Review, failed, ok
from temporal_plans.domain.fleets.promotion.soak import Condition, Measured

_CANARIES = ("canaries", "there are enough canaries")
_NAMED_LIMIT = 5
"""Canaries that a message names."""
_HEALTHY = ("healthy", "enough canaries have soaked and are healthy")


@dataclass(frozen=True, slots=True)
class Pool:
    """The canaries of a stage, with the soaks of those that have a release (``reached``)."""

    review: Review
    canary: Canary
    entities: Sequence[EntityReport]
    reached: Sequence[EntityReport]
    soaks: tuple[Measured, ...] = field(init=False)

    def __post_init__(self) -> None:
        now, weekdays = self.review.now, self.review.weekdays
        soaks = tuple(
            Measured.of(one.soak, one.condition, now, weekdays)
            for one in self.reached
            if one.soak is not None
        )
        object.__setattr__(self, "soaks", soaks)

    @property
    def large_enough(self) -> bool:
        return len(self.entities) > self.canary.minimum_entities

    @property
    def started_at(self) -> datetime | None:
        """When the first canary had the release."""
        earlier = self.review.run.started_at
        if earlier is not None or not self.reached:
            return earlier
        known = (one.soak.since for one in self.reached if one.soak is not None)
        return min(known, default=self.review.now)

    def count(self) -> CanaryCount:
        promote, recall = self.canary.promote, self.canary.recall
        return CanaryCount(
            canaries=len(self.entities),
            reached=len(self.reached),
            healthy=sum(one.is_healthy(promote.soak, promote.healthy) for one in self.soaks),
            unhealthy=sum(one.is_unhealthy(recall.soak, recall.unhealthy) for one in self.soaks)
            if recall
            else 0,
            needed=needed(promote, len(self.entities)),
        )

    def next_changes(self) -> Iterable[datetime | None]:
        """Yield when answers about single canaries may change by themselves."""
        promote, recall = self.canary.promote, self.canary.recall
        for one in self.soaks:
            yield one.next_change(promote.soak, promote.healthy, Condition.HEALTHY)
            if recall is not None:
                yield one.next_change(recall.soak, recall.unhealthy, Condition.UNHEALTHY)


def needed(when: PromoteWhen | RecallWhen, canaries: int) -> int:
    """Return how many canaries a count or a percentage stands for; at least one."""
    if when.count is not None:
        return when.count
    return max(ceil(Fraction(str(when.percent or 100)) * canaries / 100), 1)


def enough_canaries(pool: Pool) -> Verdict:
    if pool.large_enough:
        return ok(*_CANARIES)
    found, minimum = len(pool.entities), pool.canary.minimum_entities
    return failed(
        *_CANARIES,
        PromotionCode.TOO_FEW_CANARIES,
        f"there are {found} canaries, and there must be more than {minimum}",
        cure="add entities, or lower minimum-entities",
        data={"canaries": [found], "minimum-entities": [minimum]},
    )


def enough_healthy(pool: Pool, count: CanaryCount, again: datetime | None) -> Verdict:
    if count.healthy >= count.needed:
        return ok(*_HEALTHY)
    version = pool.review.release.version
    if not count.reached:
        text = f"none of {count.canaries} canaries has {version} yet"
        code, cure = PromotionCode.WAITING_FOR_CANARIES, "see why they are not upgraded"
    else:
        text = (
            f"{count.healthy} of {count.canaries} canaries have soaked with {version} and are "
            f"healthy, and {count.needed} must be"
        )
        text += _in_error(pool)
        code, cure = PromotionCode.CANARIES_SOAKING, "wait, or promote by hand"
    data = {"healthy": [count.healthy], "needed": [count.needed], "reached": [count.reached]}
    return failed(*_HEALTHY, code, text, cure=cure, again=again, data=data)


def _in_error(pool: Pool) -> str:
    """Return the canaries with the release that are in error now, for people."""
    bad = [
        f"{one.environment}/{one.entity}"
        for one in pool.reached
        if one.condition is Condition.UNHEALTHY
    ]
    if not bad:
        return ""
    more = f" and {len(bad) - _NAMED_LIMIT} more" if len(bad) > _NAMED_LIMIT else ""
    return f"; in error: {', '.join(bad[:_NAMED_LIMIT])}{more}"


def soak_ends(pool: Pool) -> datetime | None:
    """Return when twice the soak has passed since the first canary had the release."""
    started = pool.started_at
    length = 2 * pool.canary.promote.soak
    if started is None or length <= timedelta():
        return None
    weekdays = pool.review.weekdays
    return weekdays.time_of_open(started, length) or weekdays.until
