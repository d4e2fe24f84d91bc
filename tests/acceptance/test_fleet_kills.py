"""``kill -9`` of each process at seeded moments of the story of the demo's fleet.

``--kills N`` is how often each of the hub's worker and server, the spokes and their servers is
killed: one test is one story with some of these kills. CI has one story, with all of its kills.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from acceptance.fleet_kills.sites import Sites, running_sites
from acceptance.fleet_kills.story import WITHIN, Story
from acceptance.fleet_kills.strikes import Strike, stories, strike
from acceptance.fleet_kills.verdict import faults_of
from acceptance.fleet_soak.timeline import Timeline


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "strikes" in metafunc.fixturenames:
        kills = int(str(metafunc.config.getoption("--kills")))
        seed = int(str(metafunc.config.getoption("--kills-seed")))
        told = stories(kills, seed)
        metafunc.parametrize("strikes", told, ids=[f"seed{seed}-{i}" for i in range(len(told))])


@pytest.fixture
async def sites() -> AsyncIterator[Sites]:
    async with running_sites() as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(0)  # each chapter has a deadline
async def test_no_plan_is_lost_or_carried_out_twice(sites: Sites, strikes: list[Strike]) -> None:
    timeline = Timeline()
    striking = asyncio.create_task(strike(sites, strikes, timeline))
    try:
        await Story(sites, timeline).tell()
        async with asyncio.timeout(WITHIN):
            await striking
        found = await faults_of(sites)
    except AssertionError as error:
        raise AssertionError("\n".join([str(error), *timeline.lines])) from None
    finally:
        striking.cancel()
        await asyncio.gather(striking, return_exceptions=True)
    timeline.tell("judged")
    assert not found, "\n".join([*found, *timeline.lines])
