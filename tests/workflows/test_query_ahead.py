"""Histories with queries that waited for a worker replay (worker.sdk.query_ahead)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from operator import le
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from pauses import PATIENCE, until
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.sdk import runner
from workflows.clock_program import Doorbell


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(["ring"], id="after-a-task-without-commands"),
        pytest.param(["ring", "look"], id="after-two"),
        pytest.param(["ring", "ring"], id="after-a-task-with-commands"),
    ],
)
async def test_what_comes_while_a_query_waits_for_a_worker_replays(
    env: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, before: Sequence[str]
) -> None:
    """The query is answered first, with signals that no workflow task has delivered."""
    monkeypatch.setattr(runner, "OURS", (Doorbell.__module__,))
    plugin = PlansPlugin()
    client = await Client.connect(env.client.service_client.config.target_host, plugins=[plugin])
    queue = f"doorbell-{uuid4()}"

    def worker() -> Worker:
        return Worker(
            client,
            task_queue=queue,
            workflows=[Doorbell],
            sticky_queue_schedule_to_start_timeout=timedelta(seconds=1),
        )

    handle = await client.start_workflow(Doorbell.run, id=queue, task_queue=queue)
    async with worker():
        for count, signal in enumerate(before, 1):
            await handle.signal(signal)
            enough = partial(le, min(count, before.count("ring")))
            await until(lambda: handle.query(Doorbell.rings), enough)
            await asyncio.sleep(0.2)  # it must have slept, too
    asked = asyncio.create_task(handle.query(Doorbell.rings))
    await asyncio.sleep(2)  # nobody says when the server holds the query
    told = asyncio.create_task(handle.execute_update(Doorbell.knock))
    await asyncio.sleep(0.3)
    for _ in range(2):
        await handle.signal(Doorbell.ring)
    async with worker(), asyncio.timeout(PATIENCE):
        await asked
        rings = before.count("ring") + 3
        assert await told in range(1, rings + 1)
        while await handle.query(Doorbell.rings) < rings:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        history = await handle.fetch_history()
        await handle.terminate()
    await Replayer(workflows=[Doorbell], plugins=[plugin]).replay_workflow(history)
