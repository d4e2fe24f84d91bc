"""Pauses between looks: short at first, for most of what is waited for comes soon, and then longer,
for a look costs the server and the worker something too."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

Answer = TypeVar("Answer")

PATIENCE = 55.0
"""Seconds that a test waits for what comes at once, or in some seconds, when all is well: enough
for a machine that is several times slower, and less than the minute after which services and pools
look by themselves, which would hide that something was lost."""

LONG_PATIENCE = 150.0
"""The same for what keeps the processor at work for seconds when all is well."""


class Pauses:
    """``await pauses.pause()`` in a loop that has a deadline of its own. Times are in seconds."""

    def __init__(self, first: float = 0.02, longest: float = 0.5) -> None:
        self._next = first
        self._longest = longest

    async def pause(self) -> None:
        await asyncio.sleep(self._next)
        self._next = min(1.4 * self._next, self._longest)


async def until(
    look: Callable[[], Awaitable[Answer]],
    wanted: Callable[[Answer], object] = bool,
    *,
    patience: float = PATIENCE,
) -> Answer:
    """The first answer that is as wanted; fails with the last one after ``patience`` seconds."""
    loop, pauses = asyncio.get_running_loop(), Pauses()
    end = loop.time() + patience
    while not wanted(answer := await look()):
        assert loop.time() < end, f"still {answer!r} after {patience:g} s"
        await pauses.pause()
    return answer
