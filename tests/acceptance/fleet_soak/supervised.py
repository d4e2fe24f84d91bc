"""A program that is started again when it has ended by itself, as a process manager does."""

import asyncio
from pathlib import Path

from acceptance.programs import Program

LOOKS_EVERY = 1.0
"""Seconds."""

EXPLAINED = "Error: "
"""How the last line begins of a command of ours that says why it can't go on."""


class Supervised:
    """``ends`` are the last lines of those that have ended by themselves."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._lock = asyncio.Lock()
        self._wanted = False
        self.ends: list[str] = []

    @property
    def log(self) -> Path:
        return self._program.log

    @property
    def pid(self) -> int | None:
        return self._program.pid

    @property
    def unexplained(self) -> list[str]:
        return [line for line in self.ends if not line.startswith(EXPLAINED)]

    async def start(self) -> None:
        async with self._lock:
            self._wanted = True
            if not self._program.alive:
                await self._program.start()

    async def kill(self) -> None:
        async with self._lock:
            self._wanted = False
            await self._program.kill()

    async def stop(self) -> None:
        async with self._lock:
            self._wanted = False
            await self._program.stop()

    async def supervise(self) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(LOOKS_EVERY)
            async with self._lock:
                if self._wanted and not self._program.alive:
                    self.ends.append(self._program.tail(1))
                    await self._program.start()
