"""A worker that stood still or looped in an activation continues the run (worker.sdk.interruption).

The activation takes longer than the SDK's deadlock timeout, just where a task is about to be woken.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker
from temporalio.worker import _workflow_instance as instances  # pyright: ignore[reportPrivateUsage]

from pauses import PATIENCE
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.sdk.interruption import ACTIVATION_TIMEOUT
from workflows.clock_program import Doorbell

LONGER = ACTIVATION_TIMEOUT + 0.5
"""Seconds; more than a worker gives an activation."""


def _stand_still() -> None:
    time.sleep(LONGER)


def _loop() -> None:
    until = time.thread_time() + LONGER
    while time.thread_time() < until:
        pass


@pytest.mark.parametrize("linger", [_stand_still, _loop])
async def test_the_run_goes_on(
    env: WorkflowEnvironment, monkeypatch: pytest.MonkeyPatch, linger: Callable[[], None]
) -> None:
    lingering = Lingering(linger, monkeypatch)
    plugins = [PlansPlugin()]
    client = await Client.connect(env.client.service_client.config.target_host, plugins=plugins)
    queue = f"doorbell-{uuid4()}"
    async with Worker(client, task_queue=queue, workflows=[Doorbell]):
        handle = await client.start_workflow(Doorbell.run, id=queue, task_queue=queue)
        assert await handle.execute_update(Doorbell.knock) == 1
        lingering.once()
        await handle.signal(Doorbell.ring)
        async with asyncio.timeout(PATIENCE):
            assert await handle.execute_update(Doorbell.knock) == 3
        await handle.terminate()
    assert lingering.done


class Lingering:
    """Makes the next waking of a task in a workflow take long."""

    def __init__(self, linger: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
        self._linger, self._armed, self.done = linger, False, False
        instance = instances._WorkflowInstanceImpl  # pyright: ignore[reportPrivateUsage]
        call_soon = instance.call_soon

        def lingering(
            loop: Any, callback: Callable[..., Any], *args: Any, **named: Any
        ) -> asyncio.Handle:
            if self._armed and _wakes_a_task(callback):
                self._armed, self.done = False, True
                self._linger()
            return call_soon(loop, callback, *args, **named)

        monkeypatch.setattr(instance, "call_soon", lingering)

    def once(self) -> None:
        self._armed = True


def _wakes_a_task(callback: Callable[..., Any]) -> bool:
    """Tasks written in C wake by an object of their own, those in Python by a method."""
    return "wakeup" in (type(callback).__name__ + getattr(callback, "__name__", "")).lower()
