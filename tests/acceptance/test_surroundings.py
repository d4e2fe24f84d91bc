"""Networks that misbehave, and clocks that jump, while a service runs on."""

from collections.abc import AsyncIterator
from random import Random

import pytest

from acceptance import real_tasks
from acceptance.clock import can_jump
from acceptance.cluster import Cluster, Machine, running_cluster
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.pools import PoolStatus

POOL = '{"check-owners-every": "5s", "grace": "1s", "heartbeat": "2s", "give-up": "60s"}'
NAMES = ["web-0-server", "web-1-server"]
SERVICE = """
name: shop
pods:
  web:
    count: 2
    placement: '[["hostname", "MAX_PER", "1"]]'
    tasks:
      server: {goal: RUNNING, cmd: "while true; do sleep 1; done", cpus: 0.1, memory: 32,
               readiness-check: {cmd: "true", interval: 1, delay: 1, timeout: 5}}
"""
HOUR = 3600


@pytest.fixture(scope="module")
async def shop() -> AsyncIterator[Cluster]:
    """One for both tests, which leave it whole."""
    machines = (Machine("one", "one.example"), Machine("two", "two.example"))
    async with running_cluster(machines, pool=POOL, networks=True, clocks=can_jump()) as cluster:
        file = cluster.directory / "shop.yml"
        file.write_text(SERVICE)
        await cluster.plan("deploy", str(file), "--wait", limit=120)
        yield cluster


async def _until_alone(cluster: Cluster, others: set[str]) -> None:
    """Until each task runs once, none of them as one of the ``others``."""

    async def look() -> bool:
        running = cluster.running()
        names = sorted(map(real_tasks.name_of, running))
        return names == NAMES and others.isdisjoint(running)

    await cluster.until("each task runs once", look, bool, within=120)
    assert set(real_tasks.launches(cluster.work_dirs).values()) == {1}


async def _until_state(cluster: Cluster, agent: str, state: AgentState) -> None:
    def holds(pool: PoolStatus) -> bool:
        return any(one.info.id == agent and one.state is state for one in pool.agents)

    await cluster.until(f"agent {agent} is {state}", cluster.pool, holds)


@pytest.mark.timeout(400)
async def test_tasks_outlive_a_network_that_fails_in_every_way(shop: Cluster) -> None:
    running = shop.running()
    network = shop.networks["one"]
    for harm in Random(1).sample([network.stall, network.cut, network.half_open], 3):
        harm()
        await _until_state(shop, "one", AgentState.UNREACHABLE)
        network.flow()
        network.reset()
        await _until_state(shop, "one", AgentState.ALIVE)
    assert shop.running().keys() == running.keys()
    shop.networks["worker"].half_open()
    killed = next(iter(running))
    real_tasks.kill(killed, shop.work_dirs)
    shop.networks["worker"].reset()
    await _until_alone(shop, {killed})


@pytest.mark.timeout(400)
@pytest.mark.skipif(not can_jump(), reason="needs a C compiler, cc")
async def test_tasks_are_recovered_whatever_the_clocks_say(shop: Cluster) -> None:
    for agent, worker in ((HOUR, -HOUR), (-HOUR, HOUR)):
        shop.clocks["one"].set(agent)
        shop.clocks["worker"].set(worker)
        running = set(shop.running())
        for task in running:
            real_tasks.kill(task, shop.work_dirs)
        await _until_alone(shop, running)
        await shop.until_status("shop/recovery", Status.COMPLETE)  # also ready
        running = set(shop.running())
        await shop.agents["one"].kill()
        await shop.agents["one"].start()
        await _until_state(shop, "one", AgentState.ALIVE)
        await shop.plan("pod", "restart", "web-0", "-s", "shop", "--wait", limit=120)
        await _until_alone(shop, {task for task in running if "web-0" in task})
