"""A story that a demo tells until its end, while the processes run that it needs."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TypeVar

from temporal_plans.cli.actions.running import stop_signal
from temporal_plans.cli.terminal.output import print_error

Answer = TypeVar("Answer")


async def told_until_stopped(telling: Coroutine[None, None, int], proxy: int | None) -> int:
    """Return the exit code of a story, or 1 after Ctrl-C or the end of the proxy (``signal_proxy``)
    when it has removed everything that it made."""
    async with stop_signal(proxy) as stop:
        told = asyncio.create_task(telling)
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait([told, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if told.done():
            return told.result()
        print_error("interrupted; what the demo has made is being removed")
        told.cancel()
        await asyncio.gather(told, return_exceptions=True)
        return 1


async def while_running(work: Coroutine[None, None, Answer], *parts: Awaitable[None]) -> Answer:
    """Return the result of the work. Raises the error of a part that ends before."""
    working = asyncio.ensure_future(work)
    watched = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.wait([working, *watched], return_when=asyncio.FIRST_COMPLETED)
        for part in watched:
            if part.done():
                part.result()
        return await working
    finally:
        for task in (working, *watched):
            task.cancel()
        await asyncio.gather(working, *watched, return_exceptions=True)
