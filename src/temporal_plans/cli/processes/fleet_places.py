"""A hub and its spokes on one machine, each with a Temporal server of its own.

Every process is one that people start, too: ``temporal-plan worker``, ``agent`` and ``spoke``. They
end with the process that started them, and each may be killed and started again.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from temporal_plans.cli.processes.local_cluster import NotReady
from temporal_plans.cli.processes.telling import while_running
from temporal_plans.client.errors import PlansError
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.worker.child_program import ChildProgram
from temporal_plans.worker.child_server import ChildServer

_AGENT = (
    *("--cpus", "1", "--memory", "512", "--disk", "512", "--kill-tasks-on-exit"),
    *("--rlimits", "lower"),  # a laptop may allow less than production
)


@dataclass
class Place:
    """A Temporal server with what runs beside it, by name: ``worker``, and where a spoke is
    ``agent`` and ``spoke``. ``env`` is the environment of its processes."""

    name: str
    directory: Path
    server: ChildServer
    env: Mapping[str, str]
    programs: dict[str, ChildProgram] = field(default_factory=dict[str, ChildProgram])

    @classmethod
    def in_folder(cls, name: str, directory: Path) -> "Place":
        directory.mkdir(parents=True, exist_ok=True)
        server = ChildServer(directory / "temporal.db", directory / "server.log")
        return cls(name, directory, server, _environment(server.address, directory))

    def add(self, name: str, *arguments: str) -> None:
        """Add the process ``temporal-plan NAME``."""
        words = ["-m", "temporal_plans.cli", name, *arguments]
        log = self.directory / f"{name}.log"
        self.programs[name] = ChildProgram(Path(sys.executable), words, env=self.env, log=log)

    async def start(self) -> None:
        await self.server.start()
        for program in self.programs.values():
            await program.start()

    async def until_served(self) -> None:
        """Wait until the worker asks for work."""
        client = await Client.connect(self.server.address)
        request = DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=PLANS_QUEUE),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
        while not (await client.workflow_service.describe_task_queue(request)).pollers:
            await asyncio.sleep(0.1)

    async def stop(self) -> None:
        """End all in order, the server last; tasks of the agent end with it."""
        await asyncio.gather(*(program.stop() for program in self.programs.values()))
        await self.server.stop()

    async def ended(self) -> None:
        """Wait until a process ends. Raises PlansError, with the end of its output."""
        members: dict[str, ChildServer | ChildProgram] = {"server": self.server, **self.programs}
        waits = {asyncio.create_task(one.wait()): name for name, one in members.items()}
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            first = done.pop()
            log = self.directory / f"{waits[first]}.log"
            said = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise PlansError(
                f"the {waits[first]} of {self.name} ended with code {first.result()}; it said:\n"
                f"{said or '(nothing)'}"
            )
        finally:
            for wait in waits:
                wait.cancel()


@dataclass
class FleetPlaces:
    """``hub`` has the environments and the products; ``spokes`` are by the environment."""

    hub: Place
    spokes: dict[str, Place]

    @classmethod
    def in_folder(cls, directory: Path, environments: Sequence[str]) -> "FleetPlaces":
        hub = Place.in_folder("hub", directory / "hub")
        hub.add("worker")
        spokes = {name: Place.in_folder(name, directory / name) for name in environments}
        for name, place in spokes.items():
            work = place.directory
            place.add("worker")
            place.add(
                "agent",
                "--id",
                f"{name}-1",
                "--work-dir",
                str(work / "tasks"),
                *_AGENT,
            )
            place.add(
                *("spoke", "--environment", name, "--hub", hub.server.address),
                *("--work-dir", str(work / "spoke")),
            )
        return cls(hub, spokes)

    @property
    def all(self) -> list[Place]:
        return [self.hub, *self.spokes.values()]

    async def start(self, timeout: timedelta) -> None:
        """Start all, and wait until the workers work. A spoke waits by itself for the document of
        its environment. Raises DevServerError, NotReady, and PlansError for a process that ends."""
        await asyncio.gather(*(place.start() for place in self.all))
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await while_running(self._until_served(), self.ended())
        except TimeoutError:
            raise NotReady(f"the workers did not work in {timeout.total_seconds():g} s") from None

    async def _until_served(self) -> None:
        await asyncio.gather(*(place.until_served() for place in self.all))

    async def stop(self) -> None:
        """End all, the spokes first."""
        await asyncio.gather(*(place.stop() for place in self.spokes.values()))
        await self.hub.stop()

    async def ended(self) -> None:
        """Wait until a process ends. Raises PlansError, with the end of its output."""
        waits = [asyncio.create_task(place.ended()) for place in self.all]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            done.pop().result()
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


@asynccontextmanager
async def running_places(
    directory: Path, environments: Sequence[str], timeout: timedelta
) -> AsyncGenerator[FleetPlaces]:
    """Run a hub, and a spoke for each environment, below a folder; all has ended afterwards.
    ``timeout`` is for their start.

    Raises DevServerError, NotReady, and PlansError for a process that ends.
    """
    places = FleetPlaces.in_folder(directory, environments)
    try:
        await places.start(timeout)
        yield places
    finally:
        await places.stop()


def _environment(address: str, directory: Path) -> dict[str, str]:
    """Return the environment of a place's processes: no setting of the user's Temporal is in it."""
    kept = {name: one for name, one in os.environ.items() if not name.startswith("TEMPORAL")}
    none = directory / "temporal.toml"
    none.touch()
    return {**kept, "TEMPORAL_ADDRESS": address, "TEMPORAL_CONFIG_FILE": str(none)}
