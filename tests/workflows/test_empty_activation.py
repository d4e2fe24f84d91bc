"""Histories with activations that led to no command replay (worker.sdk.empty_activation)."""

from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from pauses import until
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.sdk import runner
from workflows.clock_program import Clock, ClockOutside


@pytest.mark.parametrize(
    "clock",
    [
        pytest.param(Clock, id="sandboxed"),
        pytest.param(ClockOutside, id="unsandboxed"),
    ],
)
async def test_an_update_after_activations_without_commands_replays(
    env: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, clock: type[Clock]
) -> None:
    monkeypatch.setattr(runner, "OURS", (clock.__module__,))
    plugin = PlansPlugin()
    client = await Client.connect(env.client.service_client.config.target_host, plugins=[plugin])
    queue = f"clock-{uuid4()}"
    async with Worker(client, task_queue=queue, workflows=[clock], max_cached_workflows=0):
        handle = await client.start_workflow(clock.run, id=queue, task_queue=queue)
        await until(lambda: handle.query(clock.rung))
        assert await handle.execute_update(clock.ask)
        history = await handle.fetch_history()
        await handle.terminate()
    await Replayer(workflows=[clock], plugins=[plugin]).replay_workflow(history)
