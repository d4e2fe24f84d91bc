"""Heartbeats of activities: they show the server that the worker is alive, and deliver
cancellations to the activity."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio import activity

_DEFAULT_INTERVAL = 10.0  # seconds


class Progress:
    """The progress of the activity, sent with the next heartbeat."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, text: str) -> None:
        """Set the text. May be called from any thread."""
        self.text = text


@asynccontextmanager
async def heartbeats(interval: float | None = None) -> AsyncGenerator[Progress, None]:
    """Send heartbeats while the block runs: every ``interval`` seconds, by default three per
    heartbeat timeout of the activity. A cancellation is delivered with the answer to one."""
    progress = Progress()
    if not activity.in_activity():
        yield progress
        return
    beating = asyncio.create_task(_beat(progress, interval or _interval()), name="heartbeats")
    try:
        yield progress
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


def _interval() -> float:
    timeout = activity.info().heartbeat_timeout
    return min(timeout.total_seconds() / 3, _DEFAULT_INTERVAL) if timeout else _DEFAULT_INTERVAL


async def _beat(progress: Progress, interval: float) -> None:
    while True:
        activity.heartbeat(progress.text)
        await asyncio.sleep(interval)
