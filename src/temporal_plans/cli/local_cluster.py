"""All of it on one machine: a Temporal server as a child, a worker and some agents in this process.

Used by ``dev`` and ``demo``. What belongs to it ends with it; state is in one directory.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime

from temporal_plans.activities.agent.main import run_agent
from temporal_plans.activities.agent.settings import AgentSettings
from temporal_plans.cli.agent_options import OfferedResources, measured, share
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.cluster import AgentState
from temporal_plans.messages.cluster import AgentView
from temporal_plans.worker.dev import DatabaseInUseError, DevServer, PortInUseError
from temporal_plans.worker.main import run_worker
from temporal_plans.worker.plugin import PlansPlugin

POOL = "default"

_READY_WITHIN = timedelta(seconds=60)


class NotReady(PlansError):
    """The worker or an agent did not come up in time."""


@dataclass(frozen=True)
class LocalSettings:
    """``port`` and ``ui_port`` None: free ones. ``kill_tasks``: tasks end with the agents."""

    state_dir: Path
    agents: int = 1
    port: int | None = None
    ui: bool = True
    ui_port: int | None = None
    offered: OfferedResources = field(default_factory=OfferedResources)
    kill_tasks: bool = True
    plugins: tuple[Plugin, ...] = ()
    runtime: Runtime | None = None

    def agent(self, number: int) -> AgentSettings:
        """The settings of one agent; numbers begin with 0."""
        name = f"agent-{number + 1}"
        work_dir = self.state_dir / "agents" / name
        part = share(measured(work_dir), number, self.agents)
        return AgentSettings(
            id=name,
            hostname=f"host-{number + 1}",
            pool=POOL,
            resources=self.offered.over(part),
            work_dir=work_dir,
            kill_tasks_on_exit=self.kill_tasks,
            rlimits="lower",  # a laptop may set less than production asks; the task says so
        )


@dataclass
class LocalCluster:
    """A running cluster. ``agents`` are as the pool shows them."""

    client: PlansClient
    address: str
    ui_url: str | None
    agents: tuple[AgentView, ...] = ()
    parts: list[asyncio.Task[object]] = field(default_factory=list[asyncio.Task[object]])

    async def run_until(self, stop: asyncio.Event) -> None:
        """Until ``stop``; raises what a part of the cluster ended with before that."""
        waiting = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait(
                [waiting, *self.parts], return_when=asyncio.FIRST_COMPLETED
            )
            for part in done - {waiting}:
                part.result()
                raise PlansError(f"{part.get_name()} ended by itself")
        finally:
            waiting.cancel()


@asynccontextmanager
async def local_cluster(settings: LocalSettings) -> AsyncGenerator[LocalCluster]:
    """The cluster, once its worker and agents are ready; afterwards nothing of it runs.

    Raises DevServerError, NotReady, and what an agent raises that can't run.
    """
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(_server(settings))
        plain = await _connect(server.address, settings)
        cluster = LocalCluster(PlansClient(plain), server.address, server.ui_url)
        await stack.enter_async_context(_watched(cluster, server))
        worker = await _connect(server.address, settings, PlansPlugin())
        await stack.enter_async_context(_worker(cluster, worker))
        for number in range(settings.agents):
            await stack.enter_async_context(_agent(cluster, plain, settings.agent(number)))
        await _ready(cluster, settings.agents)
        yield cluster


@asynccontextmanager
async def _server(settings: LocalSettings) -> AsyncGenerator[DevServer]:
    """The server on the state directory, which is not left behind empty if its port is taken."""
    fresh = not settings.state_dir.exists()
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    server = DevServer(
        database=settings.state_dir / "temporal.db",
        port=settings.port,
        ui=settings.ui,
        ui_port=settings.ui_port,
        log=settings.state_dir / "server.log",
    )
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(server)
        except PortInUseError:
            if fresh:
                shutil.rmtree(settings.state_dir, ignore_errors=True)
            raise
        except DatabaseInUseError as error:
            raise NotReady(str(error)) from error
        yield server


async def _connect(address: str, settings: LocalSettings, *plugins: Plugin) -> Client:
    return await Client.connect(
        address,
        data_converter=pydantic_data_converter,
        plugins=[*plugins, *settings.plugins],
        runtime=settings.runtime,
    )


@asynccontextmanager
async def _watched(cluster: LocalCluster, server: DevServer) -> AsyncGenerator[None]:
    """Its end is a failure of the cluster, as long as nobody asked for it."""
    part = asyncio.create_task(_ended(server), name="the Temporal server")
    cluster.parts.append(part)
    try:
        yield
    finally:
        part.cancel()


async def _ended(server: DevServer) -> object:
    code = await server.wait()
    raise PlansError(f"the Temporal server ended with code {code}; see server.log")


@asynccontextmanager
async def _worker(cluster: LocalCluster, client: Client) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    part: asyncio.Task[object] = asyncio.create_task(
        run_worker(client, stop=stop), name="the worker"
    )
    cluster.parts.append(part)
    try:
        yield
    finally:
        await _stopped(part, stop)


@asynccontextmanager
async def _agent(
    cluster: LocalCluster, client: Client, settings: AgentSettings
) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    part: asyncio.Task[object] = asyncio.create_task(
        run_agent(client, settings, stop=stop), name=f"agent {settings.id}"
    )
    cluster.parts.append(part)
    try:
        yield
    finally:
        await _stopped(part, stop)


async def _stopped(part: asyncio.Task[object], stop: asyncio.Event) -> None:
    """Its end, gracefully; how it ended is ``run_until``'s and ``_ready``'s to tell."""
    stop.set()
    await asyncio.wait([part])


async def _ready(cluster: LocalCluster, agents: int) -> None:
    """Until the pool knows all agents, which says that the worker works, too."""
    looking = asyncio.create_task(_all_alive(cluster, agents), name="looking for agents")
    done, _ = await asyncio.wait(
        [looking, *cluster.parts],
        timeout=_READY_WITHIN.total_seconds(),
        return_when=asyncio.FIRST_COMPLETED,
    )
    if looking not in done:
        looking.cancel()
        for part in done:
            part.result()
            raise NotReady(f"{part.get_name()} ended by itself")
        raise NotReady(f"the agents did not register in {_READY_WITHIN.total_seconds():g} s")
    cluster.agents = looking.result()


async def _all_alive(cluster: LocalCluster, count: int) -> tuple[AgentView, ...]:
    while True:
        try:
            known = (await cluster.client.pool(POOL)).agents
        except PlansError:
            known = ()
        alive = tuple(agent for agent in known if agent.state is AgentState.ALIVE)
        if len(alive) >= count:
            return alive
        await asyncio.sleep(0.1)
