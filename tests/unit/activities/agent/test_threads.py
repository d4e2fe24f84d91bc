"""An agent whose threads are stuck."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from temporal_plans.activities.agent.host.activities import AgentActivities
from temporal_plans.activities.agent.host.runner import TaskRunner
from temporal_plans.activities.agent.host.threads import ThreadProbe
from temporal_plans.messages.pools import WatchInput


class FakePool:
    """Counts the signals to it, in place of a client."""

    def __init__(self) -> None:
        self.signals = 0

    def get_workflow_handle(self, workflow_id: str) -> "FakePool":
        return self

    async def signal(self, *args: Any) -> None:
        self.signals += 1


def test_stuck_threads_are_detected_and_free_ones_again() -> None:
    async def judge() -> list[bool]:
        released = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        probe = ThreadProbe(stuck_after=0.05)
        found = [probe.stuck()]
        await asyncio.to_thread(str)
        blocked = asyncio.create_task(asyncio.to_thread(released.wait))
        await asyncio.sleep(0)
        found.append(probe.stuck())
        await asyncio.sleep(0.1)
        found.append(probe.stuck())
        released.set()
        async with asyncio.timeout(20):
            await probe.wait_until_free()
        await blocked
        found.append(probe.stuck())
        return found

    assert asyncio.run(judge()) == [False, False, True, False]


@pytest.mark.parametrize(("stuck", "alive"), [(False, True), (True, False)])
def test_only_an_agent_with_free_threads_shows_that_it_is_alive(stuck: bool, alive: bool) -> None:
    pool, beats = FakePool(), list[object]()
    order = WatchInput(pool="default", agent="a1", boot="b", heartbeat=timedelta(seconds=0.03))

    async def watch() -> None:
        released = threading.Event()
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        activities = AgentActivities(cast(Client, pool), cast(TaskRunner, None), "b")
        activities.probe = ThreadProbe(stuck_after=0.05)
        blocked: asyncio.Task[Any] | None = None
        if stuck:
            blocked = asyncio.create_task(asyncio.to_thread(released.wait))
            await asyncio.sleep(0)
            assert not activities.probe.stuck()
            await asyncio.sleep(0.1)
        environment = ActivityEnvironment()
        environment.on_heartbeat = lambda *details: beats.append(details)
        watching = asyncio.create_task(environment.run(activities.watch, order))
        await asyncio.sleep(0.2)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        released.set()
        if blocked is not None:
            await blocked

    asyncio.run(watch())
    assert (pool.signals > 0, len(beats) > 0) == (alive, alive)
