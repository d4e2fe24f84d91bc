"""Why the task of a command step is killed."""

import asyncio
import dataclasses
from datetime import timedelta
from typing import Any, cast

import pytest
from temporalio.activity import ActivityCancellationDetails
from temporalio.client import Client
from temporalio.testing import ActivityEnvironment

from acceptance.agent_bench import order, pod_spec, task_spec
from temporal_plans.activities.agent.host.activities import AgentActivities
from temporal_plans.activities.agent.host.runner import TaskRunner


class FakeRunner:
    """Has a task that runs until it is killed."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()
        self.reasons: list[str] = []

    async def launch(self, *args: Any) -> None:
        return

    async def wait(self, task_id: str) -> None:
        self.waiting.set()
        await asyncio.Event().wait()

    async def kill(self, task_ids: tuple[str, ...], grace: None, reason: str) -> None:
        self.reasons.append(reason)


@pytest.mark.parametrize(
    ("timeout", "details", "reasons"),
    [
        (None, {"cancel_requested": True}, ["the step was cancelled"]),
        (60, {"not_found": True}, ["the step was cancelled"]),
        (0.1, {"not_found": True}, ["the step timed out after 0.1 s"]),
        (0.1, {"timed_out": True}, ["the step timed out after 0.1 s"]),
        (60, {"timed_out": True}, []),
        (60, {"worker_shutdown": True}, []),
    ],
    ids=["cancelled", "ended", "timed out", "timed out here", "late heartbeat", "agent stops"],
)
async def test_the_reason_of_the_end_is_named(
    timeout: float | None, details: dict[str, bool], reasons: list[str]
) -> None:
    runner = FakeRunner()
    activities = AgentActivities(cast(Client, None), cast(TaskRunner, runner), "b")
    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(
        environment.info,
        start_to_close_timeout=None if timeout is None else timedelta(seconds=timeout),
    )
    running = asyncio.ensure_future(
        environment.run(activities.run_task, order(pod_spec(task_spec("true"))))
    )
    async with asyncio.timeout(20):
        await runner.waiting.wait()
        environment.cancel(ActivityCancellationDetails(**details))
        await asyncio.gather(running, return_exceptions=True)
    assert runner.reasons == reasons
