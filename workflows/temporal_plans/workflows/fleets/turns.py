"""The order in which requests take effect."""

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from temporalio import workflow


class Turns:
    """Requests that an activity checks first take effect in the order of their arrival: the checks
    run at once, and one may end before that of an earlier request. The order is per activity."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[object]] = {}

    @asynccontextmanager
    async def place(self, activity: str) -> AsyncGenerator["Place", None]:
        """Hold a place behind the requests that came before."""
        queue = self._waiting.setdefault(activity, deque())
        place = Place(queue)
        queue.append(place)
        try:
            yield place
        finally:
            queue.remove(place)


class Place:
    """The place of one request."""

    def __init__(self, queue: deque[object]) -> None:
        self._queue = queue

    async def comes(self) -> None:
        """Wait until all earlier requests have taken effect, or were refused."""
        if self._queue[0] is not self and workflow.patched("in the order of arrival"):
            await workflow.wait_condition(lambda: self._queue[0] is self)
