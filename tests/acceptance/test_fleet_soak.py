"""Three environments, thirty entities, and minutes in which everything happens to them. The plans
of one are carried out by a spoke on a server of its own, which is cut off now and then.

``--soak-seed N`` decides what is done, and in which order; ``--fleet-soak-minutes M`` how long it
takes in all, and ``--fleet-soak-pause S`` how much is done meanwhile. When exactly a request meets
a kill depends on the machine, so a seed that failed may pass the next time: the failure has the
timeline, and says where the histories are.
"""

import asyncio
import faulthandler
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.fleet_soak.drill import SETTLES_WITHIN, Soak
from acceptance.fleet_soak.environments import SPOKE
from acceptance.fleet_soak.place import Place, running_place

AROUND = 30.0
"""Seconds of a test that are no chaos, when all is well: start, come to rest, replay."""

SLACK = SETTLES_WITHIN + 400.0
"""Seconds that the test may take beyond what it is to take, before it counts as hung."""


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with running_place([SPOKE]) as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(0)  # the test has its own, which grows with the time that it is given
async def test_a_fleet_comes_to_rest_as_its_rules_say(
    place: Place, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    options: Any = request.config.option
    seconds: float = 60 * options.fleet_soak_minutes
    soak = Soak(place, options.soak_seed, options.fleet_soak_pause, tmp_path)
    limit = seconds + SLACK
    faulthandler.dump_traceback_later(limit + 60, exit=True)  # in place of pytest's, 1,000 seconds
    async with asyncio.timeout(limit):
        await soak.run(max(seconds - AROUND, AROUND))
