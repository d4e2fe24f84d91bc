"""Pauses between looks: short at first, for most of what is waited for comes soon, and then longer,
for a look costs the server and the worker something too."""

import asyncio

PATIENCE = 150.0
"""Seconds that a test waits for what comes at once, or in some seconds, when all is well. A busy
machine may take ten times as long, and waiting costs only the test that fails."""


class Pauses:
    """``await pauses.pause()`` in a loop that has a deadline of its own. Times are in seconds."""

    def __init__(self, first: float = 0.02, longest: float = 0.25) -> None:
        self._next = first
        self._longest = longest

    async def pause(self) -> None:
        await asyncio.sleep(self._next)
        self._next = min(1.4 * self._next, self._longest)
