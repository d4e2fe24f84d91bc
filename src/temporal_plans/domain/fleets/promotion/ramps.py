"""Ramped rollouts: upgrades to a new release on a channel are spread over a time."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from temporal_plans.domain.fleets.products import ONE_UPGRADE, Product, Ramp, Rollouts
from temporal_plans.domain.fleets.promotion.reports import EntityReport
from temporal_plans.domain.fleets.windows import ALL_TIME
from temporal_plans.domain.values.refusal import Reason


def with_ramps(
    product: Product,
    version: str,
    channels: Iterable[str],
    now: datetime,
    reports: Sequence[EntityReport] = (),
) -> tuple[Ramp, ...]:
    """Return the ramps of a product after a release came to channels. Those that are over pace
    nothing any more, and are left out. One under way keeps the duration that it began with."""
    window = product.window or ALL_TIME
    kept = tuple(
        one for one in product.ramps if window.open_time(one.started_at, now) < one.duration
    )
    followers = [one.channel for one in reports]
    begun = tuple(
        Ramp(
            channel=one,
            version=version,
            started_at=now,
            duration=product.rollouts[one],
            entities=followers.count(one),
        )
        for one in dict.fromkeys(channels)
        if one in product.rollouts
    )
    return kept + begun


def head_start(key: str) -> int:
    """Return a part of an upgrade, in millionths, which is always the same for a text, and spread
    evenly over many."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % ONE_UPGRADE


def rollout_problems(rollouts: Rollouts) -> Iterator[Reason]:
    """Yield what is wrong with the durations of a product's rollouts."""
    for channel, length in rollouts.items():
        if length <= timedelta():
            yield Reason(field=f"rollouts.{channel}", problem="must be more than 0")
