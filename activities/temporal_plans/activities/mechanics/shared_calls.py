"""Equal questions of many activities at once, asked once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class SharedCalls(Generic[Answer]):
    """All questions that are asked before a call begins have its answer, and none has that of a
    call that had begun already, which may be too old. Of each key one call is under way, and one
    waits."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Answer]] = {}
        self._waiting: dict[Hashable, asyncio.Task[Answer]] = {}

    async def ask(self, key: Hashable, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Return the answer of a call that has not begun yet. Raises the errors of the
        call. A cancellation leaves the call to the other questions."""
        task = self._waiting.get(key)
        if task is None:
            task = asyncio.create_task(self._next(key, call), name="shared call")
            task.add_done_callback(_retrieved)
            self._waiting[key] = task
        return await asyncio.shield(task)

    async def _next(self, key: Hashable, call: Callable[[], Awaitable[Answer]]) -> Answer:
        if (before := self._running.get(key)) is not None:
            await asyncio.wait({before})
        own = self._running[key] = self._waiting.pop(key)
        try:
            return await call()
        finally:
            if self._running.get(key) is own:
                del self._running[key]


def _retrieved(task: asyncio.Task[Answer]) -> None:
    """Take the error of a call whose questions were all cancelled."""
    if not task.cancelled():
        task.exception()
