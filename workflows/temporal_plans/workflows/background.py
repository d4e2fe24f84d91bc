"""Work beside a workflow's main course that must be over before the workflow is."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import workflow


class Background:
    """A task that ends when it sees that it is ``over``.

    It is asked, not cancelled: a command given after the workflow's last one is an error, a
    cancelled signal to another workflow may have been heard or not, and up to Python 3.11 a wait
    that is over in the same moment swallows a cancellation.
    """

    def __init__(self, work: Callable[["Background"], Coroutine[Any, Any, None]]) -> None:
        self.over = False
        self._task = asyncio.create_task(work(self))

    async def stop(self) -> None:
        """Let it come to its end."""
        self.over = True
        await workflow.wait_condition(self._task.done)
