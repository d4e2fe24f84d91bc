"""A started Service, what it records and what is reported to it."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from temporalio import workflow
from temporalio.client import (
    WorkflowHandle,
)

from builders.clock import NOW
from pauses import until
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.launch import LaunchIntent, LaunchOrder
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.plans import (
    LeaseGrant,
)
from temporal_plans.messages.services import (
    ServiceInput,
    ServiceStatus,
)
from temporal_plans.messages.tasks import TaskStatuses
from workflows.plan_kit import Kit


@workflow.defn(sandboxed=False)
class Listener:
    """Stands for a phase or a step: keeps what it is told."""

    def __init__(self) -> None:
        self._statuses: list[TaskStatus] = []
        self._grants: list[LeaseGrant] = []

    @workflow.run
    async def run(self) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.signal
    def task_statuses(self, message: TaskStatuses) -> None:
        self._statuses += message.statuses

    @workflow.signal
    def leased(self, message: LeaseGrant) -> None:
        self._grants.append(message)

    @workflow.query
    def statuses(self) -> TaskStatuses:
        return TaskStatuses(statuses=tuple(self._statuses))

    @workflow.query
    def grants(self) -> list[LeaseGrant]:
        return self._grants


def spec(name: str) -> ServiceSpec:
    """No instance is deployed, so that the tests alone say what is launched."""
    task = TaskSpec(name="server", goal=Goal.RUNNING, cmd="true", resource_set="set")
    pod = PodSpec(
        type="web", count=0, tasks=(task,), resource_sets=(ResourceSet(id="set", cpus=0.1),)
    )
    return ServiceSpec(name=name, pods=(pod,))


async def started(plans: Kit, /, **more: Any) -> "WorkflowHandle[Any, None]":
    name = f"svc-{uuid4()}"
    return await plans.client.start_workflow(
        "Service",
        ServiceInput(spec=spec(name), **more),
        id=f"service/{name}",
        task_queue=plans.queue,
    )


async def status(handle: "WorkflowHandle[Any, None]") -> ServiceStatus:
    answer: ServiceStatus = await handle.query("status", result_type=ServiceStatus)
    return answer


async def record(
    handle: "WorkflowHandle[Any, None]",
    index: int,
    task_id: str,
    agent: str = "a1",
    *,
    step: str = "",
    asked: datetime | None = None,
    reserved: datetime | None = None,
    owner: str = "",
    config_id: str = "",
    task: str = "server",
) -> LaunchOrder:
    reservation = Reservation(
        id=str(uuid4()),
        owner=handle.id,
        pod="web",
        index=index,
        agent=agent,
        queue=queue_of(agent),
        hostname="host",
        created=NOW,
    )
    intent = LaunchIntent(
        owner=owner,
        step=step,
        pod="web",
        index=index,
        config_id=config_id,
        reservation=reservation,
        tasks=(TaskLaunch(task_id=task_id, task=task),),
        asked=asked,
        reserved=reserved,
    )
    order: LaunchOrder = await handle.execute_update(
        "record_launch", intent, result_type=LaunchOrder
    )
    return order


def queue_of(agent: str) -> str:
    """What this agent says its task queue is; nobody can guess it."""
    return f"of {agent}"


def report(task_id: str, index: int, sequence: int, state: TaskState) -> TaskStatus:
    return TaskStatus(
        task_id=task_id, name=f"web-{index}-server", state=state, sequence=sequence, at=NOW
    )


async def heard_by(
    listener: "WorkflowHandle[Listener, None]", number: int
) -> tuple[TaskStatus, ...]:
    heard = await until(
        lambda: listener.query(Listener.statuses), lambda heard: len(heard.statuses) >= number
    )
    return heard.statuses
