"""Ramps that begin and end, and the shares of many environments."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain.fleets.constraints.ramp import allowed
from temporal_plans.domain.fleets.products import ONE_UPGRADE, Product, Ramp
from temporal_plans.domain.fleets.promotion.ramps import head_start, with_ramps

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def product(*ramps: Ramp) -> Product:
    return Product(id="g:a", rollouts={"stable": HOUR}, ramps=ramps)


def ramp(begun: timedelta, **more: int) -> Ramp:
    given = {"channel": "stable", "version": "1.0.0", "started_at": NOW - begun, "duration": HOUR}
    return Ramp.model_validate({"entities": 4, **given, **more})


def test_a_release_on_a_channel_without_a_rollout_begins_none() -> None:
    assert with_ramps(product(), "1.1.0", ("early",), NOW) == ()


def test_one_that_is_over_is_left_out_and_one_under_way_stays() -> None:
    old, young = ramp(HOUR), ramp(HOUR / 2)
    ramps = with_ramps(product(old, young), "1.1.0", ("stable", "stable"), NOW)
    assert [(one.version, one.started_at) for one in ramps] == [
        ("1.0.0", young.started_at),
        ("1.1.0", NOW),
    ]


def test_the_first_upgrades_of_many_environments_are_spread() -> None:
    """A hundred environments with an entity each: an even share of them has begun at each time."""
    shares = [ramp(HOUR, entities=1, head_start=head_start(f"e{one} g:a")) for one in range(1000)]
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        begun = sum(allowed(one, HOUR * part) for one in shares)
        assert begun == pytest.approx(1000 * part, abs=50)


@given(
    entities=st.integers(1, 1000),
    head=st.integers(0, ONE_UPGRADE),
    seconds=st.integers(0, 3600),
)
def test_never_more_than_the_share_of_the_time_and_one(
    entities: int, head: int, seconds: int
) -> None:
    one = ramp(HOUR, entities=entities, head_start=head)
    count = allowed(one, timedelta(seconds=seconds))
    assert entities * seconds / 3600 - 1 < count <= entities * seconds / 3600 + 1
