"""A workflow whose decisions depend on where its turns end."""

import asyncio
from datetime import timedelta

from temporalio import workflow


@workflow.defn
class Clock:
    """Ticks, then rings, which changes what an update does; neither needs a command."""

    def __init__(self) -> None:
        self._rung = False
        self._asked = 0

    @workflow.run
    async def run(self) -> None:
        tick = asyncio.create_task(workflow.sleep(timedelta(milliseconds=10)))
        await workflow.sleep(timedelta(milliseconds=200))
        await tick
        self._rung = True
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def ask(self) -> bool:
        self._asked += 1
        if self._rung:
            await workflow.sleep(timedelta(milliseconds=10))
        return self._rung

    @workflow.query
    def rung(self) -> bool:
        return self._rung
