"""What happens to environments by time alone: scenarios of which a test names the id.

The times of plans are those of the environment's own clock, which skips what nothing happens in.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest_asyncio

from pauses import until
from temporal_plans.domain.fleets.products import ONE_UPGRADE, Ramp
from temporal_plans.domain.fleets.promotion.ramps import head_start
from temporal_plans.domain.fleets.recalls import Recall, RollOff
from temporal_plans.messages.fleets.plans import PlanRow
from temporal_plans.testing.time_skipping import DYNAMIC_CONFIG
from temporal_plans.worker.dev import DevServer
from workflows.fleet_kit import new_environment, new_product
from workflows.plan_kit import Kit
from workflows.skipping_kit import Beginning, schedule, skipping_kit

MOMENT = timedelta(minutes=2)
"""What may pass until something is noticed: an activity or two in real time, while timers of a
minute pass at once."""

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def kit() -> AsyncIterator[Kit]:
    async with (
        DevServer(dynamic_config=DYNAMIC_CONFIG) as server,
        skipping_kit(server.address) as kit,
    ):
        yield kit


def beginning(kit: Kit) -> Beginning:
    start = datetime.now(UTC).replace(microsecond=0)
    return Beginning(new_environment(kit), new_product(kit), start)


def minute(time: datetime) -> datetime:
    return time.replace(second=0, microsecond=0)


async def plans_of(one: Beginning, count: int) -> list[PlanRow]:
    """The plans of the environment, oldest first, as soon as so many have ended."""
    rows: list[PlanRow] = []

    async def ended() -> int:
        nonlocal rows
        found = await one.environment.client.fleet_plans(one.environment.name)
        rows = sorted(
            (row for row in found.rows if row.ended_at is not None),
            key=lambda row: row.issued_at or one.start,
        )
        return len(rows)

    await until(ended, lambda found: found >= count)
    return rows


def first_share(one: Beginning, ramp: Ramp) -> float:
    """What part of the time between two upgrades passes until the first."""
    names = (one.environment.name, one.product.name, ramp.channel, ramp.version)
    return 1 - head_start(" ".join(names)) / ONE_UPGRADE


def issued(row: PlanRow) -> datetime:
    assert row.issued_at is not None
    return row.issued_at


async def test_t021_a_plan_begins_when_the_window_opens(kit: Kit) -> None:
    one = beginning(kit)
    opening = minute(one.start + 2 * DAY)
    await one.product.apply(maintenance_window=schedule((opening, opening + HOUR)))
    await one.product.publish("1.1.0")
    await one.run()
    [row] = await plans_of(one, 1)
    assert opening <= issued(row) < opening + MOMENT
    assert (row.to, row.status) == ("1.1.0", "SUCCEEDED")


async def test_t048_a_frozen_entity_is_rolled_off_when_the_freeze_ends(kit: Kit) -> None:
    one = beginning(kit)
    thaw = one.start + 3 * DAY
    recall = Recall(id="bad", start="1.0.0", single=True, roll_off=RollOff(freeze_until=thaw))
    await one.product.publish("1.0.0")
    await one.product.publish("1.1.0")
    await one.product.apply(recalls=(recall,))
    await one.run()
    [row] = await plans_of(one, 1)
    assert thaw <= issued(row) < thaw + MOMENT
    assert row.intent == "RECALL_ROLL_OFF"


async def test_t118c_the_suppression_after_a_second_failure_is_longer(kit: Kit) -> None:
    one = beginning(kit)
    kit.recorder.failures[f"{one.product.name} 1.1.0 upgrade"] = 2
    await one.product.publish("1.0.0")
    await one.product.publish("1.1.0")
    await one.run()
    rows = [row for row in await plans_of(one, 5) if row.intent == "UPGRADE"]
    assert [row.status for row in rows] == ["FAILED", "FAILED", "SUCCEEDED"]
    pauses = [
        issued(later) - before.ended_at
        for before, later in pairwise(rows)
        if before.ended_at is not None
    ]
    assert [4 * HOUR <= pauses[0] < 4 * HOUR + MOMENT, 8 * HOUR <= pauses[1] < 8 * HOUR + MOMENT]


async def test_t119_a_suppression_holds_from_its_start_to_its_end(kit: Kit) -> None:
    before, during = beginning(kit), beginning(kit)
    for one, (start, end) in ((before, (DAY, 2 * DAY)), (during, (-HOUR, DAY))):
        await one.product.publish("1.1.0")
        stop = {"id": "s", "entity": "web", "start": one.start + start, "end": one.start + end}
        await one.run(suppressions=[stop])
    [early] = await plans_of(before, 1)
    assert issued(early) < before.start + HOUR
    [late] = await plans_of(during, 1)
    assert during.start + DAY <= issued(late) < during.start + DAY + MOMENT


async def test_t119_a_suppression_that_begins_later_stops_what_waits_for_a_window(kit: Kit) -> None:
    one = beginning(kit)
    opening = minute(one.start + DAY)
    await one.product.apply(maintenance_window=schedule((opening, opening + 2 * DAY)))
    await one.product.publish("1.1.0")
    end = opening + 12 * HOUR
    stop = {"id": "s", "entity": None, "start": opening - HOUR, "end": end}
    await one.run(suppressions=[stop])
    [row] = await plans_of(one, 1)
    assert end <= issued(row) < end + MOMENT


async def test_t154_after_four_hours_a_release_with_its_artifacts_is_taken(kit: Kit) -> None:
    one = beginning(kit)
    uri = "registry.example.com/shop/web:1.2.0"
    await one.product.publish("1.1.0")
    await one.product.publish("1.2.0", artifacts=(uri,))
    await one.run(facts={"artifacts": {uri: "unavailable"}})
    [row] = await plans_of(one, 1)
    assert row.to == "1.1.0"
    assert timedelta() <= issued(row) - one.start - 4 * HOUR < MOMENT


async def test_t155_a_plan_that_is_computed_again_and_the_same_keeps_its_number(kit: Kit) -> None:
    one = beginning(kit)
    opening = minute(one.start + DAY)
    await one.product.apply(maintenance_window=schedule((opening, opening + HOUR)))
    await one.product.publish("1.1.0")
    await one.run()
    [row] = await plans_of(one, 1)
    assert (row.number, issued(row) >= opening) == (1, True)


async def test_t165_a_ramp_spreads_the_upgrades_over_its_time(kit: Kit) -> None:
    one = beginning(kit)
    ramp = Ramp(
        channel="stable", version="1.1.0", started_at=one.start, duration=3 * HOUR, entities=6
    )
    await one.product.publish("1.1.0")
    await one.product.apply(ramps=(ramp,))
    await one.run(*(f"web{number}" for number in range(6)))
    rows = await plans_of(one, 6)
    first = first_share(one, ramp)
    for number, row in enumerate(rows):
        due = one.start + (first + number) * HOUR / 2
        assert due <= issued(row) < due + MOMENT, number
    assert {row.status for row in rows} == {"SUCCEEDED"}


async def test_t169_a_ramp_stands_still_while_the_window_is_closed(kit: Kit) -> None:
    start = minute(datetime.now(UTC))
    closing, opening = start + HOUR, start + 3 * HOUR
    ramp = Ramp(channel="stable", version="1.1.0", started_at=start, duration=2 * HOUR, entities=4)
    one = beginning(kit)
    while not 0.1 < first_share(one, ramp) < 0.9:  # minutes before the window closes
        one = beginning(kit)
    await one.product.publish("1.1.0")
    await one.product.apply(
        maintenance_window=schedule((start, closing), (opening, opening + 4 * HOUR)), ramps=(ramp,)
    )
    await one.run(*(f"web{number}" for number in range(4)))
    times = [issued(row) for row in await plans_of(one, 4)]
    half, first = HOUR / 2, first_share(one, ramp) * HOUR / 2
    begins = (max(start + first, one.start), start + first + half)
    for time, due in zip(times, (*begins, opening + first, opening + first + half), strict=True):
        assert due <= time < due + MOMENT
