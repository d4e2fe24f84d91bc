"""The fleet that is harmed: a hub, and two spokes with a Temporal server each."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from acceptance.fleet_kills.documents import ENVIRONMENTS, Documents
from acceptance.fleet_kills.journal import Journal
from acceptance.fleet_soak.harm import Fault, Killed
from acceptance.fleet_soak.place import Place
from acceptance.fleet_soak.worker_program import PROGRAMS
from acceptance.programs import Program

_AGENT = ("--cpus", "4", "--memory", "4096", "--disk", "4096", "--kill-tasks-on-exit")


class Site(Place):
    """The place of a spoke: a server, a worker, an agent and the spoke's process."""

    def __init__(self, directory: Path, environment: str, hub: str) -> None:
        directory.mkdir()
        super().__init__(directory)
        self.spoke = self._program(
            *("spoke", "--environment", environment, "--hub", hub),
            *("--work-dir", str(directory / "spoke")),
        )
        self.agent = self._program(
            *("agent", "--id", f"{environment}-1", "--work-dir", str(directory / "tasks")), *_AGENT
        )
        self.members |= {"spoke": self.spoke, "agent": self.agent}

    def _program(self, name: str, *arguments: str) -> Program:
        return Program(
            PROGRAMS / "temporal-plan",
            (name, *arguments),
            env=self.env,
            log=self.directory / f"{name}.log",
        )

    async def start(self) -> None:
        await super().start()
        await self.agent.start()
        await self.spoke.start()

    async def stop(self) -> None:
        await asyncio.gather(self.spoke.stop(), self.agent.stop())
        await super().stop()


class Sites:
    """``hub`` has the products and the environments, ``spokes`` are by environment. ``journal`` is
    what all commands of plans write. ``breaking`` is held while a process is killed on purpose."""

    def __init__(self, directory: Path) -> None:
        self.journal = Journal(directory / "journal")
        self.documents = Documents(directory / "documents", self.journal.path)
        self.breaking = asyncio.Lock()
        (directory / "hub").mkdir()
        self.hub = Place(directory / "hub")
        self.spokes = {
            name: Site(directory / name, name, self.hub.server.address) for name in ENVIRONMENTS
        }

    @property
    def all(self) -> dict[str, Place]:
        return {"hub": self.hub, **self.spokes}

    async def start(self) -> None:
        await asyncio.gather(*(place.start() for place in self.all.values()))

    async def stop(self) -> None:
        await asyncio.gather(*(spoke.stop() for spoke in self.spokes.values()))
        await self.hub.stop()

    async def look_after(self) -> None:
        """Start what ended because a server was away when it began again, as service managers do;
        until it is cancelled."""
        programs = [self.hub.worker, *(site.spoke for site in self.spokes.values())]
        while True:
            async with self.breaking:
                for program in programs:
                    if not program.alive:
                        await program.start()
            await asyncio.sleep(0.5)

    def logs(self) -> Mapping[str, str]:
        """The end of what each process printed."""
        return {
            f"{name} of {where}": text
            for where, place in self.all.items()
            for name, text in place.logs().items()
        }

    def victim(self, kind: str) -> Fault:
        """What is killed: of spokes that which is at work, or was last."""
        name = self.journal.environment() or ENVIRONMENTS[0]
        site = self.spokes[name]
        found = {
            "hub worker": Killed("the worker of the hub", self.hub.worker),
            "hub server": Killed("the server of the hub", self.hub.server),
            "spoke": Killed(f"the spoke of {name}", site.spoke),
            "spoke server": Killed(f"the server of {name}", site.server),
        }
        return found[kind]


VICTIMS = ("hub worker", "hub server", "spoke", "spoke server")


@asynccontextmanager
async def running_sites() -> AsyncGenerator[Sites]:
    """A fleet that is gone afterwards, files included."""
    directory = Path(tempfile.mkdtemp(prefix="temporal-plans-"))
    sites = Sites(directory)
    try:
        await sites.start()
        manager = asyncio.create_task(sites.look_after())
        try:
            yield sites
        finally:
            manager.cancel()
    finally:
        await sites.stop()
        shutil.rmtree(directory)
