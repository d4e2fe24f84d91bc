"""Bounded concurrency of calls to the server."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from typing import TypeVar

Result = TypeVar("Result")

_CONCURRENCY_LIMIT = 10
"""Calls in flight; the server limits their number for one client."""


async def gather_bounded(calls: Iterable[Awaitable[Result]]) -> list[Result]:
    """Return the results in order, with a limited number of calls in flight."""
    slots = asyncio.Semaphore(_CONCURRENCY_LIMIT)

    async def limited(call: Awaitable[Result]) -> Result:
        try:
            async with slots:
                return await call
        finally:
            if isinstance(call, Coroutine):
                call.close()  # it never began, if all were cancelled while it waited for a slot

    return await asyncio.gather(*(limited(call) for call in calls))
