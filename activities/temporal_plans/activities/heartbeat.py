"""Life signs of activities: by them the server knows that their worker lives, and they hear that
they are cancelled."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio import activity

_USUAL = 10.0


class Progress:
    """What the activity is at; the next heartbeat carries it."""

    def __init__(self) -> None:
        self.text = ""

    def __call__(self, text: str) -> None:
        """May be called from any thread."""
        self.text = text


@asynccontextmanager
async def heartbeats() -> AsyncGenerator[Progress, None]:
    """Heartbeats, three in the activity's heartbeat timeout, while the block runs."""
    progress = Progress()
    if not activity.in_activity():
        yield progress
        return
    beating = asyncio.create_task(_beat(progress), name="heartbeats")
    try:
        yield progress
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def _beat(progress: Progress) -> None:
    timeout = activity.info().heartbeat_timeout
    pause = min(timeout.total_seconds() / 3, _USUAL) if timeout else _USUAL
    while True:
        activity.heartbeat(progress.text)
        await asyncio.sleep(pause)
