"""What an entity has yet to tell other workflows, one signal in flight to each."""

import asyncio
from collections import defaultdict
from collections.abc import Coroutine
from typing import Any

from temporalio import workflow

from temporal_plans.workflows.handlers import tell


class Outbox:
    """Messages leave in order, per receiver. One to a workflow that is over is dropped: whoever
    takes its work up asks again."""

    def __init__(self) -> None:
        self._queues: dict[str, list[tuple[str, object]]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, receiver: str, signal: str, message: object) -> None:
        queue = self._queues[receiver]
        queue.append((signal, message))
        if len(queue) == 1:
            self.run(self._send(receiver))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Other work that must be over before the entity continues as new."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drained(self) -> None:
        """Until nothing is left to tell."""
        await workflow.wait_condition(lambda: not self._tasks)

    async def _send(self, receiver: str) -> None:
        queue = self._queues[receiver]
        while queue:
            signal, message = queue[0]
            await tell(receiver, signal, message)
            queue.pop(0)
        del self._queues[receiver]
