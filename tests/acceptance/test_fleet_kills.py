"""``kill -9`` of the worker and of the Temporal server at seeded moments of a small fleet's story.

``--kills N`` is how often each of them is killed; the story is told as often as that needs.
"""

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from random import Random

import pytest

from acceptance.fleet_soak import verdict
from acceptance.fleet_soak.harm import Fault, faults_of
from acceptance.fleet_soak.place import Place, running_place
from acceptance.fleet_soak.story import Story, strike
from acceptance.fleet_soak.timeline import Timeline
from pauses import PATIENCE

A_STORY = 4
"""How many kills a story has at most."""


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with running_place() as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(0)  # it grows with the number of kills
async def test_no_plan_of_a_fleet_is_lost_or_carried_out_twice(
    place: Place, request: pytest.FixtureRequest
) -> None:
    kills = int(request.config.getoption("--kills") or 0)
    chance, timeline = Random(f"fleet kills {kills}"), Timeline()
    faults = [one for one in faults_of(place) for _ in range(kills)]
    chance.shuffle(faults)
    names: list[str] = []
    for round in count():
        now, faults = faults[:A_STORY], faults[A_STORY:]
        story = Story(place, timeline, round)
        names += story.names
        await _told(story, place, now, chance, timeline)
        if not faults:
            break
    found = await verdict.plan_faults(place, names, place.ledger, resolved=set())
    more, recorded = await verdict.decision_faults(place, names)
    timeline.tell(f"{recorded.snapshots} recorded snapshots, {len(place.ledger.lines())} lines")
    assert not found + more, "\n".join([*found, *more, *timeline.lines])


async def _told(
    story: Story, place: Place, faults: list[Fault], chance: Random, timeline: Timeline
) -> None:
    """Tell a story to its end while things break; all of them must have."""
    strikes = asyncio.create_task(strike(place, faults, chance, timeline))
    try:
        await story.tell()
        async with asyncio.timeout(PATIENCE):
            await strikes
        otherwise = await place.insist("a last look", story.decided_otherwise)
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *timeline.lines])) from None
    finally:
        strikes.cancel()
        await asyncio.gather(strikes, return_exceptions=True)
    assert not otherwise, otherwise
