"""A cluster on one machine: a Temporal server as a child process, a worker and agents in this one.

Used by ``dev`` and ``demo``. Its parts end with it; its state is in one directory.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client, Plugin
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime

from temporal_plans.activities.agent.host.main import run_agent
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.cli.processes.agent_options import OfferedResources, measured, share
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.messages.pools import AgentView
from temporal_plans.worker.dev import DatabaseInUseError, DevServer, PortInUseError
from temporal_plans.worker.main import run_worker
from temporal_plans.worker.plugin import PlansPlugin

POOL = "default"

_USUAL_PORTS = (7233, 8233)

_READY_TIMEOUT = timedelta(seconds=60)


class NotReady(PlansError):
    """The worker or an agent did not come up in time."""


@dataclass(frozen=True)
class LocalSettings:
    """Settings of a local cluster. ``port`` and ``ui_port`` None: free ports. ``kill_tasks``: tasks
    end with the agents. ``clusters`` are those that the worker executes tasks of packages in."""

    state_dir: Path
    agents: int = 1
    port: int | None = None
    ui: bool = True
    ui_port: int | None = None
    offered: OfferedResources = field(default_factory=OfferedResources)
    kill_tasks: bool = True
    worker: bool = True
    clusters: tuple[ClusterAccess, ...] = ()
    plugins: tuple[Plugin, ...] = ()
    runtime: Runtime | None = None

    @property
    def server_ports(self) -> tuple[int, ...]:
        """The ports of Temporal and its UI: those of this cluster, and the usual ones, so that a
        pod does not hold them when the cluster is started with other ports the next time."""
        ports = (*_USUAL_PORTS, self.port, self.ui_port)
        return tuple(port for port in ports if port is not None)

    def agent(self, number: int) -> AgentSettings:
        """Return the settings of an agent; numbers begin with 0."""
        name = f"agent-{number + 1}"
        work_dir = self.state_dir / "agents" / name
        part = share(measured(work_dir), number, self.agents, self.server_ports)
        return AgentSettings(
            id=name,
            hostname=f"host-{number + 1}",
            pool=POOL,
            resources=self.offered.over(part),
            work_dir=work_dir,
            kill_tasks_on_exit=self.kill_tasks,
            rlimits="lower",  # a laptop may allow less than production; the task logs it
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
        """Wait until ``stop``. Raises PlansError, or the error of a part that ended before."""
        waiting = asyncio.create_task(stop.wait())
        try:
            done, _ = await asyncio.wait(
                [waiting, *self.parts], return_when=asyncio.FIRST_COMPLETED
            )
            for part in done - {waiting}:
                part.result()
                raise PlansError(f"{part.get_name()} ended unexpectedly")
        finally:
            waiting.cancel()


@asynccontextmanager
async def local_cluster(settings: LocalSettings) -> AsyncGenerator[LocalCluster]:
    """Run a cluster: yield it when its worker and agents are ready, and stop all parts afterwards.

    Raises DevServerError, NotReady, and the error of an agent that can't run.
    """
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(_server(settings))
        plain = await _connect(server.address, settings)
        cluster = LocalCluster(PlansClient(plain), server.address, server.ui_url)
        await stack.enter_async_context(_server_watch(cluster, server))
        if settings.worker:
            plugin = PlansPlugin(clusters=settings.clusters)
            worker = await _connect(server.address, settings, plugin)
            served = [access.name for access in settings.clusters]
            await stack.enter_async_context(_worker(cluster, worker, served))
        for number in range(settings.agents):
            await stack.enter_async_context(_agent(cluster, plain, settings.agent(number)))
        if settings.worker:  # without one the agents register later, with the user's
            await _ready(cluster, settings.agents)
        yield cluster


@asynccontextmanager
async def _server(settings: LocalSettings) -> AsyncGenerator[DevServer]:
    """Run the server. If its port is in use, a state directory that was new is removed."""
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
async def _server_watch(cluster: LocalCluster, server: DevServer) -> AsyncGenerator[None]:
    """Count an end of the server as a failure of the cluster, until the cluster stops."""
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
async def _worker(
    cluster: LocalCluster, client: Client, served: Sequence[str]
) -> AsyncGenerator[None]:
    stop = asyncio.Event()
    part: asyncio.Task[object] = asyncio.create_task(
        run_worker(client, stop=stop, clusters=served), name="the worker"
    )
    cluster.parts.append(part)
    try:
        yield
    finally:
        await _stop(part, stop)


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
        await _stop(part, stop)


async def _stop(part: asyncio.Task[object], stop: asyncio.Event) -> None:
    """Stop a part gracefully. ``run_until`` and ``_ready`` report its error."""
    stop.set()
    await asyncio.wait([part])


async def _ready(cluster: LocalCluster, agents: int) -> None:
    """Wait until the pool has all agents, which also proves that the worker works."""
    registration = asyncio.create_task(_all_alive(cluster, agents), name="registration of agents")
    done, _ = await asyncio.wait(
        [registration, *cluster.parts],
        timeout=_READY_TIMEOUT.total_seconds(),
        return_when=asyncio.FIRST_COMPLETED,
    )
    if registration not in done:
        registration.cancel()
        for part in done:
            part.result()
            raise NotReady(f"{part.get_name()} ended unexpectedly")
        raise NotReady(f"the agents did not register in {_READY_TIMEOUT.total_seconds():g} s")
    cluster.agents = registration.result()


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
