"""Histories with refused updates replay (worker.sdk.refused_update)."""

import asyncio
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from pauses import PATIENCE, until
from temporal_plans.worker.plugin import PlansPlugin
from workflows.clock_program import Ledger


async def test_an_update_that_is_refused_beside_a_timer_replays(env: WorkflowEnvironment) -> None:
    """Both wait for a worker, so that one workflow task brings them."""
    plugin = PlansPlugin()
    client = await Client.connect(env.client.service_client.config.target_host, plugins=[plugin])
    queue = f"ledger-{uuid4()}"

    def worker() -> Worker:
        return Worker(client, task_queue=queue, workflows=[Ledger], max_cached_workflows=0)

    async with worker():
        handle = await client.start_workflow(Ledger.run, id=queue, task_queue=queue)
        await until(lambda: handle.fetch_history(), lambda history: len(history.events) > 4)
    knocked = asyncio.create_task(handle.execute_update(Ledger.knock))
    await until(lambda: handle.fetch_history(), lambda history: len(history.events) > 6)
    await asyncio.sleep(0.5)  # nobody says when the server holds the update
    async with worker(), asyncio.timeout(PATIENCE):
        with pytest.raises(WorkflowUpdateFailedError):
            await knocked
        assert await handle.result()
        history = await handle.fetch_history()
    await Replayer(workflows=[Ledger], plugins=[plugin]).replay_workflow(history)
