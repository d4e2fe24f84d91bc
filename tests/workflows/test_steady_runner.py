"""Histories of workers that know nothing but the history replay (worker.steady_runner)."""

import asyncio
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from temporal_plans.worker import steady_runner
from temporal_plans.worker.plugin import PlansPlugin
from workflows.clock_program import Clock


async def test_an_update_after_turns_without_commands_replays(
    env: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steady_runner, "OURS", (Clock.__module__,))
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
