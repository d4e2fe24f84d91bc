"""Statuses on their way to the workflows that wait for them: in order, at least once."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress

from temporal_plans.domain.task import TaskStatus

_log = logging.getLogger(__name__)

_BATCH = 100
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 10.0
_GATHER = 0.01
_GATHER_TOLD = 0.25


class NoSuchDestination(Exception):
    """The workflow that statuses are for is not there, and won't be."""


Send = Callable[[str, tuple[TaskStatus, ...]], Awaitable[None]]
"""Delivers statuses to a workflow by id. NoSuchDestination ends it; any other error is retried."""

Delivered = Callable[[TaskStatus], None]


class Outbox:
    """A queue for each destination. Kept in memory: a new agent sends every newest status again.

    Statuses that wait are sent together. One that its receiver was told already, as the result of
    a launch, is in no hurry and waits a little for others to go with it.
    """

    def __init__(self, send: Send, delivered: Delivered) -> None:
        self._send = send
        self._delivered = delivered
        self._lanes: dict[str, _Lane] = {}

    def post(self, destination: str, status: TaskStatus) -> None:
        """Sends a status, soon. Without a destination it counts as delivered."""
        if not destination:
            self._delivered(status)
            return
        lane = self._lanes.get(destination)
        if lane is None:
            lane = self._lanes[destination] = _Lane(destination, self._send, self._delivered)
            lane.task = asyncio.create_task(self._empty(lane), name=f"outbox {destination}")
        lane.add(status)

    async def close(self, patience: float) -> None:
        """Tries for a while, in seconds, to deliver what is left, then stops."""
        for lane in self._lanes.values():
            lane.hurry.set()
        tasks = [lane.task for lane in self._lanes.values() if lane.task]
        if tasks:
            await asyncio.wait(tasks, timeout=patience)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _empty(self, lane: "_Lane") -> None:
        """Not by a callback, which comes later: what is posted to a lane that has ended is lost."""
        try:
            await lane.run()
        finally:
            del self._lanes[lane.destination]


class _Lane:
    """What one destination has coming; lives as long as there is something."""

    def __init__(self, destination: str, send: Send, delivered: Delivered) -> None:
        self.task: asyncio.Task[None] | None = None
        self.hurry = asyncio.Event()
        self.destination = destination
        self._send = send
        self._delivered = delivered
        self._waiting: deque[TaskStatus] = deque()

    def add(self, status: TaskStatus) -> None:
        self._waiting.append(status)
        if not status.told:
            self.hurry.set()

    async def run(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_TOLD):
                await self.hurry.wait()
        await asyncio.sleep(_GATHER)  # the statuses of one moment travel together
        while self._waiting:
            batch = tuple(self._waiting)[:_BATCH]
            await self._deliver(batch)
            for status in batch:
                self._waiting.popleft()
                self._delivered(status)

    async def _deliver(self, batch: tuple[TaskStatus, ...]) -> None:
        pause = _FIRST_PAUSE
        while True:
            try:
                return await self._send(self.destination, batch)
            except NoSuchDestination:
                _log.warning(
                    "%s is no more; %d task statuses for it are dropped",
                    self.destination,
                    len(batch),
                )
                return None
            except Exception as problem:
                _log.warning("no status reaches %s, trying again: %s", self.destination, problem)
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            pause = min(pause * 2, _LONGEST_PAUSE)
