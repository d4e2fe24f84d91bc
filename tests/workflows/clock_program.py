"""Workflows whose decisions depend on where their activations end."""

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


@workflow.defn(sandboxed=False)
class ClockOutside(Clock):
    """The same without a sandbox."""

    @workflow.run
    async def run(self) -> None:
        await super().run()


@workflow.defn
class Doorbell:
    """Sleeps whenever somebody rang, the longer the more often."""

    def __init__(self) -> None:
        self._rings = 0
        self._rung = False

    @workflow.run
    async def run(self) -> None:
        while True:
            await workflow.wait_condition(lambda: self._rung)
            self._rung = False
            if self._rings > 1:
                await workflow.sleep(timedelta(milliseconds=10 * self._rings))

    @workflow.signal
    def look(self) -> None:
        """Nothing happens."""

    @workflow.signal
    def ring(self) -> None:
        self._rings, self._rung = self._rings + 1, True

    @workflow.update
    def knock(self) -> int:
        self.ring()
        return self._rings

    @workflow.query
    def rings(self) -> int:
        return self._rings


@workflow.defn
class Ledger:
    """Is closed when its history is long; whether its bell rang before decides how. Knocks are
    refused."""

    def __init__(self) -> None:
        self._rung = False

    @workflow.run
    async def run(self) -> bool:
        bell = asyncio.create_task(self._ring())
        await workflow.wait_condition(lambda: workflow.info().get_current_history_length() > 6)
        if not self._rung:
            await workflow.sleep(timedelta(milliseconds=10))
        await bell
        return self._rung

    async def _ring(self) -> None:
        await workflow.sleep(timedelta(seconds=3))
        self._rung = True

    @workflow.update
    def knock(self) -> None:
        """Nobody hears it."""

    @knock.validator
    def _refuse_knock(self) -> None:
        raise ValueError("nobody is there")
