"""The Service entity on a real server: records, statuses, leases, its plans, long life."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.client import WorkflowExecutionStatus, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.testing import WorkflowEnvironment

from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.leases import Lease
from temporal_plans.domain.service import Goal, PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import (
    LaunchIntent,
    LaunchOrder,
    TaskLaunch,
    TaskStatuses,
)
from temporal_plans.messages.service import (
    LeaseRequest,
    ServiceInput,
    ServiceStatus,
    StartPlan,
    Tasks,
)
from workflows.plan_kit import Kit, kit

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def plans(env: WorkflowEnvironment) -> AsyncIterator[Kit]:
    async with kit(env.client.service_client.config.target_host) as made:
        yield made


def spec(name: str) -> ServiceSpec:
    """No instance is deployed, so that the tests alone say what is launched."""
    task = TaskSpec(name="server", goal=Goal.RUNNING, cmd="true", resource_set="set")
    pod = PodSpec(
        type="web", count=0, tasks=(task,), resource_sets=(ResourceSet(id="set", cpus=0.1),)
    )
    return ServiceSpec(name=name, pods=(pod,))


async def started(plans: Kit, **more: Any) -> "WorkflowHandle[Any, None]":
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


async def tasks(handle: "WorkflowHandle[Any, None]") -> Tasks:
    answer: Tasks = await handle.query("tasks", result_type=Tasks)
    return answer


async def record(
    handle: "WorkflowHandle[Any, None]", index: int, task_id: str, agent: str = "a1"
) -> LaunchOrder:
    reservation = Reservation(
        id=str(uuid4()),
        owner=handle.id,
        pod="web",
        index=index,
        agent=agent,
        hostname="host",
        created=NOW,
    )
    intent = LaunchIntent(
        owner="",
        step="",
        pod="web",
        index=index,
        config_id="",
        reservation=reservation,
        tasks=(TaskLaunch(task_id=task_id, task="server"),),
    )
    order: LaunchOrder = await handle.execute_update(
        "record_launch", intent, result_type=LaunchOrder
    )
    return order


def report(task_id: str, index: int, sequence: int, state: TaskState) -> TaskStatus:
    return TaskStatus(
        task_id=task_id, name=f"web-{index}-server", state=state, sequence=sequence, at=NOW
    )


async def test_a_launch_is_recorded_once_and_names_what_is_in_the_way(plans: Kit) -> None:
    handle = await started(plans)
    assert (await record(handle, 0, "one")).kill == ()
    first = await record(handle, 0, "two")
    again = await record(handle, 0, "two")
    assert [task.task_id for task in first.kill] == ["one"]
    assert again == first
    await handle.terminate()


async def test_a_late_status_of_an_old_launch_changes_nothing(plans: Kit) -> None:
    handle = await started(plans)
    await record(handle, 0, "one")
    await record(handle, 0, "two")
    statuses = TaskStatuses(
        statuses=(
            report("two", 0, 2, TaskState.RUNNING),
            report("two", 0, 1, TaskState.STARTING),
            report("one", 0, 9, TaskState.FAILED),
        )
    )
    await handle.signal("task_statuses", statuses)
    (known,) = (await tasks(handle)).tasks
    assert known.status is not None
    assert (known.task_id, known.status.state) == ("two", TaskState.RUNNING)
    await handle.terminate()


async def test_5000_statuses_pass_by_continuing_as_new(plans: Kit) -> None:
    handle = await started(plans, history_limit=300)
    for index in range(50):
        await record(handle, index, f"task-{index}")
    first = (await handle.describe()).run_id

    async def say(index: int) -> None:
        for batch in range(10):
            reports = [
                report(f"task-{index}", index, batch * 10 + n, TaskState.RUNNING) for n in range(10)
            ]
            await handle.signal("task_statuses", TaskStatuses(statuses=tuple(reports)))

    await asyncio.gather(*(say(index) for index in range(50)))
    known = (await tasks(handle)).tasks
    assert len(known) == 50
    assert {task.status.sequence for task in known if task.status} == {99}
    described = await handle.describe()
    assert described.run_id != first
    assert described.history_length < 2000
    await handle.terminate()


async def test_plans_are_started_listed_and_run_again(plans: Kit) -> None:
    handle = await started(plans)
    deploy = await _closed(plans, handle)
    again = await handle.execute_update("start_plan", StartPlan(plan="deploy", by="me"))
    assert again["code"] == 200
    assert (await _closed(plans, handle)) != deploy
    (plan,) = (await status(handle)).plans
    assert (plan.name, plan.status, plan.run) == ("deploy", Status.COMPLETE, 2)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("start_plan", StartPlan(plan="deplyo"))
    assert "did you mean deploy" in str(refused.value.cause)
    await handle.terminate()


async def _closed(plans: Kit, handle: "WorkflowHandle[Any, None]") -> str:
    """The run id of the deploy plan, once the service has heard of its end."""
    end = time.monotonic() + 20
    while True:
        known = (await status(handle)).plans
        if known and not known[0].open and known[0].status is Status.COMPLETE:
            described = await plans.client.get_workflow_handle(known[0].workflow_id).describe()
            if described.status is WorkflowExecutionStatus.COMPLETED:
                return described.run_id
        assert time.monotonic() < end, known
        await asyncio.sleep(0.05)


async def test_who_holds_an_asset_keeps_it(plans: Kit) -> None:
    handle = await started(plans)

    def lease(phase: str, priority: int) -> Lease:
        return Lease(
            plan=phase,
            phase=phase,
            step=0,
            pod="web",
            index=0,
            tasks=("server",),
            priority=priority,
        )

    await handle.signal("leases", LeaseRequest(phase="later", wants=(lease("later", 10),)))
    await handle.signal("leases", LeaseRequest(phase="first", wants=(lease("first", 0),)))
    assert [held.phase for held in (await status(handle)).leases] == ["later"]
    await handle.signal("leases", LeaseRequest(phase="later", returns=(0,)))
    assert [held.phase for held in (await status(handle)).leases] == ["first"]
    await handle.terminate()
