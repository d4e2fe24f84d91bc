"""Several questions at the same time."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

Answer = TypeVar("Answer")

_AT_ONCE = 10
"""Questions asked at the same time; the server limits how many one client may have under way."""


async def together(calls: Iterable[Awaitable[Answer]]) -> list[Answer]:
    """The answers in order; not all are asked at once."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(call: Awaitable[Answer]) -> Answer:
        async with gate:
            return await call

    return await asyncio.gather(*(one(call) for call in calls))
