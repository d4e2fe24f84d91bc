"""Agents for tests: they run pods as processes of this machine."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.client import Client

from temporal_plans.activities.agent.host.main import run_agent
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.client.errors import PlansError, PoolNotFound, WorkerUnreachable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.cluster.agents import AgentResources, AgentState

_RESOURCES = AgentResources(cpus=8, memory=16_384, disk=100_000)
"""The offer of an agent, whatever the machine has: nothing of it is enforced."""

_POLL_INTERVAL = 0.05


@asynccontextmanager
async def agents_of(
    client: Client, plans: PlansClient, pool: str, count: int, timeout: timedelta
) -> AsyncGenerator[None]:
    """Run ``count`` agents of a pool: ``agent-1`` on ``host-1``, and so on. At the end their tasks
    are killed and their files deleted. Raises PlansError when they do not register in time, and
    the error of an agent that can't run."""
    with TemporaryDirectory(prefix="temporal-plans-") as directory:
        async with AsyncExitStack() as stack:
            running = [
                await stack.enter_async_context(
                    _agent(client, _settings(number, pool, Path(directory)))
                )
                for number in range(1, count + 1)
            ]
            await _registered(plans, pool, running, timeout)
            yield


def _settings(number: int, pool: str, directory: Path) -> AgentSettings:
    return AgentSettings(
        id=f"agent-{number}-{pool}",
        hostname=f"host-{number}",
        pool=pool,
        resources=_RESOURCES,
        work_dir=directory / f"agent-{number}",
        isolation="accounted",
        rlimits="lower",
        kill_tasks_on_exit=True,
    )


@asynccontextmanager
async def _agent(client: Client, settings: AgentSettings) -> AsyncGenerator[asyncio.Task[None]]:
    stop = asyncio.Event()
    part = asyncio.create_task(run_agent(client, settings, stop=stop), name=settings.id)
    try:
        yield part
    finally:
        stop.set()
        await asyncio.wait([part])


async def _registered(
    plans: PlansClient, pool: str, running: list[asyncio.Task[None]], timeout: timedelta
) -> None:
    clock = asyncio.get_running_loop()
    end = clock.time() + timeout.total_seconds()
    while await _alive(plans, pool) < len(running):
        for part in running:
            if part.done():
                part.result()
        if clock.time() > end:
            raise PlansError(f"the agents did not register within {timeout.total_seconds():g} s")
        await asyncio.sleep(_POLL_INTERVAL)


async def _alive(plans: PlansClient, pool: str) -> int:
    try:
        agents = (await plans.pool(pool)).agents
    except (PoolNotFound, WorkerUnreachable):
        return 0
    return sum(agent.state is AgentState.ALIVE for agent in agents)
