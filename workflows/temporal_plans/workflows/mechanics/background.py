"""A background task that must end before its workflow does."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from temporalio import workflow


class Background:
    """A task that ends itself once ``over`` is set.

    The task is not cancelled: a command after the workflow's last one is an error, a cancelled
    signal to another workflow may or may not have been delivered, and up to Python 3.11 a wait that
    finishes in the same moment swallows a cancellation.
    """

    def __init__(self, work: Callable[["Background"], Coroutine[Any, Any, None]]) -> None:
        self.over = False
        self._task = asyncio.create_task(work(self))

    async def stop(self) -> None:
        """Set ``over``, and wait until the task has ended."""
        self.over = True
        await workflow.wait_condition(self._task.done)
