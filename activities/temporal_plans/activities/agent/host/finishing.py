"""Work that must be finished even when its caller is cancelled."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def finish_despite_cancellation(
    work: Awaitable[T], stop: Callable[[], None] | None = None
) -> T:
    """Return the result of ``work``, which always runs to its end.

    On cancellation, call ``stop`` (which may make the work end sooner), wait for the end, and only
    then raise CancelledError.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        if stop is not None:
            stop()
        await asyncio.wait([running])
        if not running.cancelled():
            running.exception()  # retrieved, or asyncio would log it
        raise
