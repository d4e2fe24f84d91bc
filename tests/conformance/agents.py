"""The built-in backend on a real server: the workflow ``Pool``, and agents in this process."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from temporalio import workflow
from temporalio.client import Client

from acceptance import real_tasks
from pauses import until
from temporal_plans.activities.agent.backend import AgentBackend
from temporal_plans.activities.agent.host.layout import WorkDir
from temporal_plans.activities.agent.host.main import run_agent
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.domain.cluster.agents import AgentResources
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.messages.addresses import PLANS_QUEUE, pool_id
from temporal_plans.messages.pools import AgentView, Holdings, OfferedMessage, PoolInput, PoolStatus
from temporal_plans.messages.tasks import TaskStatuses


@workflow.defn
class Listener:
    """Whoever launches and waits: a Service and a step in one."""

    def __init__(self) -> None:
        self._statuses: list[TaskStatus] = []
        self._offered: list[str] = []

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def task_statuses(self, message: TaskStatuses) -> None:
        self._statuses += message.statuses

    @workflow.signal
    def offered(self, message: OfferedMessage) -> None:
        if message.reservation is not None:
            self._offered.append(message.reservation.key)

    @workflow.query
    def reports(self) -> TaskStatuses:
        return TaskStatuses(statuses=tuple(self._statuses))

    @workflow.query
    def offers(self) -> Holdings:
        return Holdings(keys=tuple(self._offered))


class Agent:
    """An agent that can be started again on its work directory."""

    def __init__(self, client: Client, settings: AgentSettings) -> None:
        self._client = client
        self.settings = settings

    def start(self) -> None:
        self._stop = asyncio.Event()
        self._running = asyncio.create_task(run_agent(self._client, self.settings, stop=self._stop))

    async def stop(self) -> None:
        self._stop.set()
        await self._running


class AgentCluster:
    """A pool of its own name (``cluster.Cluster``)."""

    def __init__(self, client: Client, directory: Path, grace: timedelta) -> None:
        self.backend = AgentBackend(client)
        self.pool = f"pool-{uuid4().hex[:8]}"
        self.listener = f"listener-{uuid4()}"
        self._client = client
        self._directory = directory
        self._grace = grace
        self._agents: dict[str, Agent] = {}

    async def start(self) -> None:
        settings = PoolInput(
            name=self.pool, grace=self._grace, check_owners_every=timedelta(hours=1)
        )
        await self._client.start_workflow(
            "Pool", settings, id=pool_id(self.pool), task_queue=PLANS_QUEUE
        )
        await self._client.start_workflow(Listener.run, id=self.listener, task_queue=PLANS_QUEUE)

    async def stop(self) -> None:
        await asyncio.gather(*(agent.stop() for agent in self._agents.values()))
        await real_tasks.end_all(self._work_dirs)
        for workflow_id in (pool_id(self.pool), self.listener):
            await self._client.get_workflow_handle(workflow_id).terminate()

    async def add(self, machine: str, *, cpus: float = 4) -> str:
        settings = AgentSettings(
            id=f"{machine}-{uuid4().hex[:8]}",
            hostname=machine,
            pool=self.pool,
            resources=AgentResources(cpus=cpus, memory=1000, disk=1000),
            work_dir=self._directory / machine,
            isolation="accounted",
        )
        agent = self._agents[settings.id] = Agent(self._client, settings)
        agent.start()
        await self._until(settings.id, lambda view: True)
        return settings.id

    async def restart(self, machine: str) -> None:
        view = await self._until(machine, lambda view: True)
        await self._agents[machine].stop()
        self._agents[machine].start()
        await self._until(machine, lambda now: now.info.boot != view.info.boot)

    async def _until(self, machine: str, holds: Callable[[AgentView], bool]) -> AgentView:
        handle = self._client.get_workflow_handle(pool_id(self.pool))

        async def look() -> AgentView | None:
            status: PoolStatus = await handle.query("status", result_type=PoolStatus)
            views = (view for view in status.agents if view.info.id == machine)
            return next(filter(holds, views), None)

        view = await until(look)
        assert view is not None
        return view

    async def reports(self) -> Sequence[TaskStatus]:
        listener = self._client.get_workflow_handle(self.listener)
        answer: TaskStatuses = await listener.query("reports", result_type=TaskStatuses)
        return answer.statuses

    async def offers(self) -> Sequence[str]:
        listener = self._client.get_workflow_handle(self.listener)
        answer: Holdings = await listener.query("offers", result_type=Holdings)
        return answer.keys

    def starts(self, task_id: str) -> int:
        return real_tasks.launches(self._work_dirs)[task_id]

    def has_volumes(self, held: Reservation) -> bool:
        work_dir = WorkDir(self._agents[held.agent].settings.work_dir)
        return any(work_dir.volume(one.id).exists() for one in held.resources)

    async def outlive_grace(self) -> None:
        await asyncio.sleep(self._grace.total_seconds() + 0.5)

    @property
    def _work_dirs(self) -> list[Path]:
        return [agent.settings.work_dir for agent in self._agents.values()]


@asynccontextmanager
async def agent_cluster(
    client: Client, directory: Path, grace: timedelta
) -> AsyncGenerator[AgentCluster]:
    cluster = AgentCluster(client, directory, grace)
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()
