"""What stands around plans of a service in their tests: a Service that does as it is told."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import Worker

from pauses import PATIENCE, Pauses
from workflows.pool_programs import BareAgent

with workflow.unsafe.imports_passed_through():
    from temporal_plans.domain.cluster.reservations import Reservation
    from temporal_plans.domain.plans import leases
    from temporal_plans.domain.plans.leases import LeaseState
    from temporal_plans.domain.services.launch import (
        LaunchIntent,
        LaunchOrder,
        LaunchPlace,
        LaunchTarget,
    )
    from temporal_plans.domain.services.spec import PodSpec, ResourceSet, ServiceSpec, TaskSpec
    from temporal_plans.domain.tasks.goal import Goal
    from temporal_plans.domain.tasks.names import task_instance_name
    from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus
    from temporal_plans.domain.values.model import CompactValue
    from temporal_plans.messages.addresses import pool_id
    from temporal_plans.messages.plans import LeaseGrant, LeaseRequest, PlanReport, PodContext
    from temporal_plans.messages.pools import Holdings, PoolInput
    from temporal_plans.messages.services import (
        EraseTask,
        Released,
        Retired,
        RetireTask,
        SubscribeMessage,
    )
    from temporal_plans.messages.tasks import KillInput, LaunchInput, TaskStatuses

POD = "web"


class Told(CompactValue):
    """All that the service was told, in order."""

    reports: tuple[PlanReport, ...] = ()
    intents: tuple[LaunchIntent, ...] = ()
    subscriptions: tuple[SubscribeMessage, ...] = ()
    retired: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()
    released: tuple[str, ...] = ()
    leases: LeaseState = LeaseState()
    requests: tuple[LeaseRequest, ...] = ()

    @property
    def asked_for(self) -> list[str]:
        """The steps for which assets were wanted, each as often as it was."""
        return [f"{want.phase}/{want.step}" for one in self.requests for want in one.wants]


class Setting(CompactValue):
    """What it answers. ``dead`` are tasks, ``agents`` where the others are; ``replaces`` the
    reservation that the pod leaves; ``paused`` the tasks that are launched so; ``lost`` the agents
    that are given up just when a launch on them is on record; ``slow``: it answers no launch;
    ``in_the_way``: what has to be killed for a launch;
    ``wanted``: the keys of the pods that it wants."""

    dead: tuple[str, ...] = ()
    agents: dict[str, str] = {}
    replaces: str = ""
    paused: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    slow: bool = False
    in_the_way: tuple[TaskRef, ...] = ()
    wanted: tuple[str, ...] = ()
    target: str = "c1"


@workflow.defn(sandboxed=False)
class ServiceDouble:
    """Grants leases as the Service does, and otherwise answers what it was set to."""

    def __init__(self) -> None:
        self._told = Told()
        self._setting = Setting()
        self._held: dict[str, Reservation] = {}

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def set(self, setting: Setting) -> None:
        self._setting = setting

    @workflow.query
    def told(self) -> Told:
        return self._told

    @workflow.signal
    def plan_changed(self, report: PlanReport) -> None:
        self._told = self._told.but(reports=(*self._told.reports, report))
        if not report.open:
            state = leases.drop_plan(self._told.leases, report.plan).state
            self._told = self._told.but(leases=state)

    @workflow.signal
    async def leases(self, request: LeaseRequest) -> None:
        self._told = self._told.but(requests=(*self._told.requests, request))
        settled = leases.request(
            self._told.leases, request.wants, request.returns, request.phase, request.ended
        )
        self._told = self._told.but(leases=settled.state)
        for lease in settled.grants:
            phase = workflow.get_external_workflow_handle(lease.phase)
            await phase.signal("leased", LeaseGrant(granted={lease.step: lease.ticket}))

    @workflow.signal
    def subscribe(self, message: SubscribeMessage) -> None:
        self._told = self._told.but(subscriptions=(*self._told.subscriptions, message))

    @workflow.query
    def launch_target(self, target: LaunchTarget) -> LaunchPlace:
        config = target.config_id or self._setting.target
        return LaunchPlace(config_id=config, spec=spec(), replaces=self._setting.replaces)

    @workflow.update
    async def record_launch(self, intent: LaunchIntent) -> LaunchOrder:
        self._told = self._told.but(intents=(*self._told.intents, intent))
        self._held[intent.reservation.key] = intent.reservation
        if intent.reservation.agent in self._setting.lost:
            owner = workflow.get_external_workflow_handle(intent.owner)
            gone = _all(intent, TaskState.GONE_BY_OPERATOR, 0, workflow.now())
            await owner.signal("task_statuses", gone)
        await workflow.wait_condition(lambda: not self._setting.slow)
        return LaunchOrder(paused=self._setting.paused, kill=self._setting.in_the_way)

    @workflow.update
    def retire_task(self, request: RetireTask) -> Retired:
        self._told = self._told.but(retired=(*self._told.retired, request.task))
        if request.task in self._setting.dead:
            return Retired(dead=True)
        return Retired(dead=False, agent=self._setting.agents.get(request.task, ""))

    @workflow.update
    def erase_task(self, request: EraseTask) -> None:
        self._told = self._told.but(erased=(*self._told.erased, request.task))

    @workflow.signal
    def released(self, message: Released) -> None:
        self._told = self._told.but(released=(*self._told.released, message.key))

    @workflow.query
    def wanted(self) -> Holdings:
        return Holdings(keys=self._setting.wanted)

    @workflow.query
    def holdings(self) -> Holdings:
        return Holdings(keys=tuple(self._held))


def _all(
    launch: LaunchIntent | LaunchInput, state: TaskState, sequence: int, at: datetime
) -> TaskStatuses:
    """The same of every task of a launch."""
    return TaskStatuses(
        statuses=tuple(
            TaskStatus(
                task_id=task.task_id,
                name=task_instance_name(launch.pod, launch.index, task.task),
                state=state,
                sequence=sequence,
                at=at,
                agent=launch.reservation.agent,
                queue=launch.reservation.queue,
            )
            for task in launch.tasks
        )
    )


def spec() -> ServiceSpec:
    tasks = (
        TaskSpec(name="server", goal=Goal.RUNNING, cmd="true", resource_set="set"),
        TaskSpec(name="job", goal=Goal.ONCE, cmd="true", resource_set="set"),
    )
    sets = (ResourceSet(id="set", cpus=1),)
    return ServiceSpec(
        name="double", pods=(PodSpec(type=POD, count=2, tasks=tasks, resource_sets=sets),)
    )


class ServiceKit:
    """One service double, and waiting for what it is told."""

    def __init__(self, handle: "WorkflowHandle[Any, None]") -> None:
        self.handle = handle
        self.id = handle.id

    def context(self, plan: str = "test", **more: Any) -> dict[str, Any]:
        """The context of a plan of this service."""
        name = self.id.removeprefix("service/")
        pods = {key: more.pop(key) for key in PodContext.model_fields if key in more}
        return {"owner": name, "workflow_id": self.id, "plan": plan, "pods": pods, **more}

    async def set(self, **setting: Any) -> None:
        await self.handle.signal("set", Setting(**setting))

    async def told(self) -> Told:
        answer: Told = await self.handle.query("told", result_type=Told)
        return answer

    async def until(self, condition: Callable[[Told], bool]) -> Told:
        """The first of what it was told for which that is true."""
        end, pauses = time.monotonic() + PATIENCE, Pauses()
        while True:
            told = await self.told()
            if condition(told):
                return told
            assert time.monotonic() < end, f"not in time: {told.model_dump_json(indent=1)}"
            await pauses.pause()


@asynccontextmanager
async def service_double(client: Client) -> AsyncGenerator[ServiceKit]:
    queue = f"double-{uuid4()}"
    async with Worker(client, task_queue=queue, workflows=[ServiceDouble]):
        handle = await client.start_workflow(
            ServiceDouble.run, id=f"service/{queue}", task_queue=queue
        )
        yield ServiceKit(handle)
        await handle.terminate()


async def pool_of(client: Client, queue: str, **settings: Any) -> str:
    """A real Pool of its own on that worker; its name. No agent falls silent for it, however busy
    the machine is, without a shorter ``heartbeat``."""
    name = f"pool-{uuid4()}"
    settings = {"heartbeat": 30, "give_up": 60, **settings}
    input = PoolInput.model_validate({"name": name, **settings})
    await client.start_workflow("Pool", input, id=pool_id(name), task_queue=queue)
    return name


class TaskAgent(BareAgent):
    """An agent whose tasks run at once, but the first ``failing`` launches, which fail. Launches
    wait for the ``gate``."""

    def __init__(self, client: Client, pool: str, agent: str) -> None:
        super().__init__(client, pool, agent)
        self.launched: list[LaunchInput] = []
        self.killed: list[str] = []
        self.failing = 0
        self.gate = asyncio.Event()
        self.gate.set()

    @property
    def activities(self) -> list[Callable[..., Any]]:
        return [*super().activities, self.launch, self.kill]

    @activity.defn
    async def launch(self, order: LaunchInput) -> TaskStatuses:
        self.launched.append(order)
        await self.gate.wait()
        state = TaskState.FAILED if len(self.launched) <= self.failing else TaskState.RUNNING
        return _all(order, state, 1, activity.info().started_time)

    @activity.defn
    async def kill(self, order: KillInput) -> TaskStatuses:
        self.killed += order.task_ids
        return TaskStatuses()
