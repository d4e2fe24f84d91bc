"""Wakes a workflow's main loop at given times."""

import asyncio
from collections.abc import Callable
from datetime import datetime

from temporalio import workflow


class Alarm:
    """A timer in Temporal costs history, so one that is set already is used for what is due later:
    when it goes off, whoever still waits sets it again."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._due: datetime | None = None

    def at(self, when: datetime) -> None:
        """Ring at that time, or earlier."""
        if self._due is None or when < self._due:
            self._due = when
            asyncio.create_task(self._wait(when))  # noqa: RUF006  # it ends by itself

    async def _wait(self, when: datetime) -> None:
        left = (when - workflow.now()).total_seconds()
        if left > 0:
            await workflow.sleep(left, summary="look again")
        if self._due == when:
            self._due = None
            self._ring()
