"""A timer that wakes a workflow's main loop."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from temporalio import workflow


class Alarm:
    """Calls ``on_due`` at the earliest requested time.

    A Temporal timer costs history events, so a later time sets no second timer: when the first one
    fires, the main loop requests what is still due.
    """

    def __init__(self, on_due: Callable[[], None]) -> None:
        self._on_due = on_due
        self._due: datetime | None = None

    def at(self, when: datetime) -> None:
        """Call ``on_due`` at ``when``, or earlier."""
        if self._due is None or when < self._due:
            self._due = when
            asyncio.create_task(self._wait(when))  # noqa: RUF006  # ends by itself

    async def _wait(self, when: datetime) -> None:
        left = (when - workflow.now()).total_seconds()
        if left > 0:
            await workflow.sleep(left, summary="until the next work is due")
        if self._due == when:
            self._due = None
            self._on_due()
