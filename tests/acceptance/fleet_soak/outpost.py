"""Where the plans of an environment with a spoke are carried out: a Temporal server of its own, a
worker and the spoke, which reaches the hub through a network that may be broken."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from acceptance.fleet_soak.supervised import Supervised
from acceptance.fleet_soak.worker_program import PROGRAMS, worker_program
from acceptance.programs import Member, Program, Server
from acceptance.proxy import Proxy

Environ = Callable[[str], dict[str, str]]
"""The variables of processes whose server has an address."""


class Outpost:
    """The place of an environment. ``hub`` is the port of the hub's server."""

    def __init__(self, environment: str, directory: Path, hub: int, environ: Environ) -> None:
        self.environment = environment
        self.network = Proxy(hub)
        self._networks = AsyncExitStack()
        self.server = Server(
            directory / f"{environment}.db", directory / f"{environment}-server.log"
        )
        env = environ(self.server.address)
        self._worker = worker_program(env, directory / f"{environment}-worker.log")
        spoke = Program(
            PROGRAMS / "temporal-plan",
            [
                *("spoke", "--environment", environment, "--hub", self.network.address),
                *("--work-dir", str(directory / f"{environment}-spoke")),
            ],
            env=env,
            log=directory / f"{environment}-spoke.log",
        )
        self.spoke = Supervised(spoke)
        self._supervising: asyncio.Task[None] | None = None

    @property
    def members(self) -> Mapping[str, Member]:
        """The processes by name."""
        return {
            f"{self.environment}-server": self.server,
            f"{self.environment}-worker": self._worker,
            f"{self.environment}-spoke": self.spoke,
        }

    async def start(self) -> None:
        """The spoke waits by itself for its worker, and for its environment at the hub. It ends
        when the hub does not answer as it starts, and is started again."""
        await self._networks.enter_async_context(self.network)
        await self.server.start()
        await self._worker.start()
        await self.spoke.start()
        self._supervising = asyncio.create_task(self.spoke.supervise())

    async def stop(self) -> None:
        if self._supervising is not None:
            self._supervising.cancel()
            await asyncio.gather(self._supervising, return_exceptions=True)
        await self.spoke.stop()
        await self._worker.stop()
        await self._networks.aclose()
        await self.server.stop()
