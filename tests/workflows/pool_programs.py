"""What stands around a Pool in its tests: workflows that own and wait, and agents without tasks."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from temporal_plans.domain.cluster.agents import AgentInfo, AgentResources
    from temporal_plans.domain.cluster.requirements import Requirement, SetWant
    from temporal_plans.messages.addresses import pool_id
    from temporal_plans.messages.pools import (
        AgentLostMessage,
        DestroyInput,
        HeardMessage,
        Holdings,
        OfferedMessage,
        ReleaseInput,
        ReserveInput,
        ReserveResult,
        WatchInput,
    )


@workflow.defn
class Owner:
    """Stands for a Service or a Step: asks, is told, and says what it holds."""

    def __init__(self) -> None:
        self._offered: list[str] = []
        self._lost: list[AgentLostMessage] = []
        self._holds: tuple[str, ...] = ()

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def offered(self, message: OfferedMessage) -> None:
        if message.reservation is not None:
            self._offered.append(message.reservation.key)

    @workflow.signal
    def agent_lost(self, message: AgentLostMessage) -> None:
        self._lost.append(message)

    @workflow.signal
    def hold(self, message: Holdings) -> None:
        self._holds = message.keys

    @workflow.query
    def was_offered(self) -> list[str]:
        return sorted(self._offered)  # the server may pass signals of one moment on in any order

    @workflow.query
    def lost_agents(self) -> list[str]:
        return [f"{one.agent}{' removed' if one.by_operator else ''}" for one in self._lost]

    @workflow.query
    def holdings(self) -> Holdings:
        return Holdings(keys=self._holds)


@workflow.defn
class Many:
    """Asks for many reservations at once, by the activity as steps do."""

    @workflow.run
    async def run(self, requests: list[ReserveInput]) -> list[ReserveResult]:
        results: list[ReserveResult] = await asyncio.gather(
            *(
                workflow.execute_activity(
                    "reserve",
                    one,
                    result_type=ReserveResult,
                    start_to_close_timeout=timedelta(seconds=60),
                )
                for one in requests
            )
        )
        return results


@workflow.defn
class Once:
    """One activity of the Pool's; how it fails is how this fails."""

    @workflow.run
    async def run(self, request: ReserveInput | ReleaseInput) -> ReserveResult | None:
        name = "reserve" if isinstance(request, ReserveInput) else "release"
        result: ReserveResult | None = await workflow.execute_activity(
            name,
            request,
            result_type=ReserveResult if name == "reserve" else None,
            start_to_close_timeout=timedelta(seconds=60),
            retry_policy=RetryPolicy(maximum_attempts=3),
        )
        return result


_HEARTBEAT_INTERVAL = timedelta(seconds=0.2)
"""Else the SDK holds heartbeats back for most of their timeout."""


class BareAgent:
    """The process on a machine, as the Pool sees it: it watches and destroys, and runs nothing."""

    def __init__(self, client: Client, pool: str, agent: str, cpus: float = 4) -> None:
        self._client = client
        self._pool = client.get_workflow_handle(pool_id(pool))
        self._worker: Worker | None = None
        self._boots = 0
        self._mute = asyncio.Event()
        self.agent = agent
        self.queue = f"of {agent}"  # nobody can guess it
        self.lineage = ""
        self.resources = AgentResources(cpus=cpus, memory=1000)
        self.destroyed: list[str] = []
        self.may_destroy = asyncio.Event()
        self.may_destroy.set()

    @property
    def activities(self) -> list[Callable[..., Any]]:
        return [self.watch, self.destroy]

    async def start(self, *, register: bool = True) -> None:
        self._mute.clear()
        self._boots += 1
        self._worker = Worker(
            self._client,
            task_queue=self.queue,
            activities=self.activities,
            max_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
            default_heartbeat_throttle_interval=_HEARTBEAT_INTERVAL,
        )
        self._running = asyncio.create_task(self._worker.run())
        if register:
            await self.register()

    @property
    def info(self) -> AgentInfo:
        return AgentInfo(
            id=self.agent,
            queue=self.queue,
            hostname=f"host-{self.agent}",
            resources=self.resources,
            boot=str(self._boots),
            lineage=self.lineage,
        )

    async def register(self) -> None:
        await self._pool.signal("register", self.info)

    def mute(self) -> None:
        """No more heartbeats, as if the machine hung."""
        self._mute.set()

    async def stop(self) -> None:
        if self._worker is not None:
            self.may_destroy.set()
            await self._worker.shutdown()
            await self._running
            self._worker = None

    @activity.defn
    async def watch(self, request: WatchInput) -> None:
        if self._mute.is_set():
            await asyncio.Event().wait()
        message = HeardMessage(agent=request.agent, boot=str(self._boots))
        await self._pool.signal("heard", message)
        while not self._mute.is_set():
            activity.heartbeat()
            await asyncio.sleep(request.heartbeat.total_seconds() / 5)
        await asyncio.Event().wait()

    @activity.defn
    async def destroy(self, request: DestroyInput) -> None:
        await self.may_destroy.wait()
        self.destroyed.append(request.reservation_id)


def want(owner: str, index: int = 0, cpus: float = 1, notify: str = "") -> Requirement:
    sets = (SetWant(id="s", cpus=cpus),)
    return Requirement(owner=owner, pod="pod", index=index, notify=notify or owner, sets=sets)
