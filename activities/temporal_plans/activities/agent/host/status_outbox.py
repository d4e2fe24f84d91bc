"""Delivers task statuses to workflows: in order, at least once."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from temporal_plans.domain.tasks.statuses import TaskStatus

_log = logging.getLogger(__name__)

_BATCH_SIZE = 100
# In seconds.
_FIRST_RETRY_INTERVAL = 0.2
_RETRY_INTERVAL_LIMIT = 10.0
_GATHER_INTERVAL = 0.01
_RETURNED_GATHER_INTERVAL = 0.25


class NoSuchDestination(Exception):
    """The workflow that statuses are for does not exist any more."""


Send = Callable[[str, tuple[TaskStatus, ...]], Awaitable[None]]
"""Delivers statuses to a workflow by id. Any error except NoSuchDestination is retried."""

Delivered = Callable[[TaskStatus], None]


class StatusOutbox:
    """A queue for each destination. In memory only: a new agent sends every newest status again.

    Waiting statuses are sent in one batch. A status that its receiver already has, as the result of
    a launch (``told``), waits longer for others to join its batch.
    """

    def __init__(self, send: Send, delivered: Delivered) -> None:
        self._send = send
        self._delivered = delivered
        self._queues: dict[str, _Queue] = {}

    def post(self, destination: str, status: TaskStatus) -> None:
        """Send a status soon. Without a destination it counts as delivered."""
        if not destination:
            self._delivered(status)
            return
        queue = self._queues.get(destination)
        if queue is None:
            queue = self._queues[destination] = _Queue(destination, self._send, self._delivered)
            queue.task = asyncio.create_task(self._run(queue), name=f"outbox {destination}")
        queue.add(status)

    async def close(self, timeout: float) -> None:
        """Deliver the remaining statuses for at most ``timeout`` seconds, then stop."""
        for queue in self._queues.values():
            queue.urgent.set()
        tasks = [queue.task for queue in self._queues.values() if queue.task]
        if tasks:
            await asyncio.wait(tasks, timeout=timeout)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, queue: "_Queue") -> None:
        """Send a queue's statuses, then remove it. Not in a callback, which runs later: statuses
        that are posted to an ended queue would be lost."""
        try:
            await queue.run()
        finally:
            del self._queues[queue.destination]


class _Queue:
    """The waiting statuses of one destination; removed when it is empty."""

    def __init__(self, destination: str, send: Send, delivered: Delivered) -> None:
        self.task: asyncio.Task[None] | None = None
        self.urgent = asyncio.Event()
        self.destination = destination
        self._send = send
        self._delivered = delivered
        self._waiting: deque[TaskStatus] = deque()

    def add(self, status: TaskStatus) -> None:
        self._waiting.append(status)
        if not status.told:
            self.urgent.set()

    async def run(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_RETURNED_GATHER_INTERVAL):
                await self.urgent.wait()
        await asyncio.sleep(_GATHER_INTERVAL)  # gather the statuses of one moment
        while self._waiting:
            batch = tuple(self._waiting)[:_BATCH_SIZE]
            await self._deliver(batch)
            for status in batch:
                self._waiting.popleft()
                self._delivered(status)

    async def _deliver(self, batch: tuple[TaskStatus, ...]) -> None:
        interval = _FIRST_RETRY_INTERVAL
        while True:
            try:
                return await self._send(self.destination, batch)
            except NoSuchDestination:
                _log.warning(
                    "%s does not exist any more; dropped %d task statuses for it",
                    self.destination,
                    len(batch),
                )
                return None
            except Exception as problem:
                _log.warning(
                    "statuses were not delivered to %s, retrying: %s", self.destination, problem
                )
            await asyncio.sleep(interval * random.uniform(0.8, 1.2))
            interval = min(interval * 2, _RETRY_INTERVAL_LIMIT)
