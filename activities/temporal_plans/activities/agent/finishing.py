"""Work that must not be left half done because somebody stopped waiting for it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def finished(work: Awaitable[T], stop: Callable[[], None] | None = None) -> T:
    """The result of ``work``, which always runs to its end.

    Cancelled, this calls ``stop`` (which may make the work end sooner), waits for the end, and
    only then passes the cancellation on.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # looked at, so that nobody warns of it
        raise
