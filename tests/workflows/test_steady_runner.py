"""Histories of workers that know nothing but the history replay (worker.steady_runner)."""

import asyncio
from datetime import timedelta
from uuid import uuid4

from temporalio import workflow
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from temporal_plans.worker.plugin import PlansPlugin


@workflow.defn
class Clock:
    """Ticks, then rings, which changes what an update does; neither needs a command."""

    def __init__(self) -> None:
        self._rung = False
        self._asked = 0

    @workflow.run
    async def run(self) -> None:
        tick = asyncio.create_task(workflow.sleep(timedelta(milliseconds=10)))
        await workflow.sleep(timedelta(milliseconds=200))
        await tick
        self._rung = True
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def ask(self) -> bool:
        self._asked += 1
        if self._rung:
            await workflow.sleep(timedelta(milliseconds=10))
        return self._rung

    @workflow.query
    def rung(self) -> bool:
        return self._rung


async def test_an_update_after_turns_without_commands_replays(env: WorkflowEnvironment) -> None:
    plugin = PlansPlugin()
    client = await Client.connect(env.client.service_client.config.target_host, plugins=[plugin])
    queue = f"clock-{uuid4()}"
    async with Worker(client, task_queue=queue, workflows=[Clock], max_cached_workflows=0):
        handle = await client.start_workflow(Clock.run, id=queue, task_queue=queue)
        async with asyncio.timeout(20):
            while not await handle.query(Clock.rung):
                await asyncio.sleep(0.02)
        assert await handle.execute_update(Clock.ask)
        history = await handle.fetch_history()
        await handle.terminate()
    await Replayer(workflows=[Clock], plugins=[plugin]).replay_workflow(history)
