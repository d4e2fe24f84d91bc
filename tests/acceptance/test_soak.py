"""Three services, four agents, and minutes in which everything happens to them.

``--soak-seed N`` decides what is done, and in which order; ``--soak-minutes M`` how long it takes
in all. With ``--soak-networks`` connections to the server misbehave, and with ``--soak-clocks`` the
clocks of agents and the worker jump. When exactly a command meets a kill
depends on the machine, so a seed that failed may pass the next time: the failure has the timeline
and the state of everything, and says where the histories are.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from acceptance.cluster import THREE, Cluster, Machine, running_cluster
from acceptance.soak.drill import CONVERGES_WITHIN, Soak
from acceptance.soak.harm import POOL

AROUND = 60.0
"""Seconds of a test that are no chaos, when all is well: start, converge, replay."""

SLACK = CONVERGES_WITHIN + 500.0
"""Seconds that the test may take beyond what it is to take, before it counts as hung."""


@pytest.fixture
async def four_agents(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
    options: Any = request.config.option
    machines = (*THREE, Machine("four", "four.example"))
    async with running_cluster(
        machines, pool=POOL, networks=options.soak_networks, clocks=options.soak_clocks
    ) as cluster:
        yield cluster


@pytest.mark.long
@pytest.mark.timeout(0)  # the test has its own, which grows with the time that it is given
async def test_everything_converges(
    four_agents: Cluster, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    options: Any = request.config.option
    seed: int = options.soak_seed
    seconds: float = 60 * options.soak_minutes
    soak = await Soak.on(four_agents, seed, tmp_path)
    async with asyncio.timeout(seconds + SLACK):
        await soak.run(max(seconds - AROUND, AROUND / 2))
