"""Launches and tasks of the Service entity on a real server: records, statuses, kills, places."""

import asyncio
import dataclasses
import re
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import (
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import Worker

from builders.clock import NOW
from pauses import PATIENCE, until
from temporal_plans.activities.pools.pool_placement import PoolPlacement
from temporal_plans.activities.services.pods import PodActivities
from temporal_plans.domain.plans.leases import Lease, LeaseState
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState
from temporal_plans.messages.addresses import pool_id
from temporal_plans.messages.owners import (
    OwnerState,
)
from temporal_plans.messages.plans import (
    OwnerContext,
    PodContext,
)
from temporal_plans.messages.pools import (
    AgentLostMessage,
    DeregisterRequest,
    DeregisterResult,
    Holdings,
    PoolInput,
    PoolStatus,
    ReserveInput,
    ReserveResult,
)
from temporal_plans.messages.services import (
    PodCommand,
    PreparePodInput,
    PreparePodResult,
    Retired,
    RetireTask,
    ServiceInput,
    ServiceState,
    SubscribeMessage,
    Tasks,
)
from temporal_plans.messages.tasks import KillInput, TaskStatuses
from workflows.plan_kit import Kit
from workflows.pool_programs import BareAgent
from workflows.service_kit import (
    Listener,
    heard_by,
    queue_of,
    record,
    report,
    spec,
    started,
    status,
)

POD_WORK = {"kind": "pod", "pod": "web", "index": 0, "tasks": ["server"]}


async def tasks(handle: "WorkflowHandle[Any, None]") -> Tasks:
    answer: Tasks = await handle.query("tasks", result_type=Tasks)
    return answer


async def test_a_launch_is_recorded_once_and_names_what_is_in_the_way(plans: Kit) -> None:
    handle = await started(plans)
    assert (await record(handle, 0, "one")).kill == ()
    first = await record(handle, 0, "two")
    again = await record(handle, 0, "two")
    assert [task.task_id for task in first.kill] == ["one"]
    assert again == first
    await handle.terminate()


async def test_a_recovery_that_was_called_off_launches_nothing(plans: Kit) -> None:
    handle = await started(plans)
    await record(handle, 0, "newest", step="svc/deploy/web/web-0:[server]")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "as-it-was", step="svc/recovery/web-0:[server]/web-0:[server]")
    assert "was cancelled" in str(refused.value.cause)
    assert [task.task_id for task in (await tasks(handle)).tasks] == ["newest"]
    await handle.terminate()


async def test_a_request_that_comes_late_replaces_no_newer_launch(plans: Kit) -> None:
    """The step was interrupted while it asked, and went on before that had arrived."""
    handle = await started(plans)
    await record(handle, 0, "second", step="p/s", asked=NOW + timedelta(seconds=2))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "first", step="p/s", asked=NOW + timedelta(seconds=1))
    assert "p/s has launched second since" in str(refused.value.cause)
    assert [task.task_id for task in (await tasks(handle)).tasks] == ["second"]
    await record(handle, 0, "second", step="p/s", asked=NOW + timedelta(seconds=2))
    await record(handle, 0, "another's", step="p/t", asked=NOW + timedelta(seconds=1))
    await record(handle, 0, "third", step="p/t", asked=NOW + timedelta(seconds=3))
    assert [task.task_id for task in (await tasks(handle)).tasks] == ["third"]
    await handle.terminate()


async def test_a_launch_on_an_agent_that_was_given_up_since_is_refused(plans: Kit) -> None:
    """What was reserved is asked for again; also when the agent is back."""
    handle = await started(plans, state=ServiceState(lost_agents={"a2": NOW}))
    lost = AgentLostMessage(agent="a1", pool="default", at=NOW)
    await handle.signal("agent_lost", lost)
    for agent in ("a1", "a2"):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await record(handle, 0, "one", agent, reserved=NOW - timedelta(seconds=1))
        cause = refused.value.cause
        assert isinstance(cause, ApplicationError)
        assert (cause.type, cause.details[0]["code"], cause.details[1]) == (
            "Refused",
            "agent-lost",
            False,
        )
        await record(handle, 0, f"{agent}-is-back", agent, reserved=NOW + timedelta(seconds=1))
    await record(handle, 0, "elsewhere", "a3", reserved=NOW - timedelta(seconds=1))
    await handle.terminate()


async def test_a_launch_of_a_pod_that_another_works_on_is_refused(plans: Kit) -> None:
    """Its step was forced while it was being prepared, and has given the pod back since."""
    lease = Lease(plan="recovery", phase="p/q", step=0, pod="web", index=0, tasks=("server",))
    handle = await started(plans, state=ServiceState(leases=LeaseState(held=(lease,))))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "late", step="p/r/s", owner="p/r/s")
    assert "has lost the lease of its pod to p/q" in str(refused.value.cause)
    await record(handle, 0, "one", step="p/q/s", owner="p/q/s")
    await record(handle, 0, "two", step="p/q/s", owner="p/q")
    await record(handle, 1, "three", step="p/r/s", owner="p/r/s")
    await handle.terminate()


async def test_a_launch_of_a_pod_that_was_taken_away_since_is_refused(plans: Kit) -> None:
    """Nobody knew of it when the plan that takes pods away was made."""
    name = f"svc-{uuid4()}"
    service = spec(name)
    [web] = service.pods
    other = web.tasks[0].but(name="other")
    nothing = PlanSpec(name="deploy", phases=())
    by_hand = {"name": "by-hand", "phases": {"p": {"steps": {"s": {"work": POD_WORK}}}}}
    two, one = (
        ServiceInput(
            spec=service.but(
                pods=(web.but(count=count, tasks=(web.tasks[0], other), allow_decommission=True),)
            ),
            plans=(nothing, PlanSpec.model_validate(by_hand)),
        )
        for count in (2, 1)
    )
    handle = await plans.client.start_workflow(
        "Service", two, id=f"service/{name}", task_queue=plans.queue
    )
    before = (await status(handle)).config_id
    await handle.execute_update("deploy", one)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 1, "late", config_id=before)
    assert "pod web-1 is no longer in the target configuration" in str(refused.value.cause)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "late", config_id=before, task="other")
    assert "task web-0-other is no longer launched by any plan" in str(refused.value.cause)
    await record(handle, 0, "in-place", config_id=before)
    wanted = await handle.query("wanted", result_type=Holdings)
    assert wanted.keys == (f"{handle.id}:web-0",)
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


async def test_tasks_that_it_does_not_follow_are_gone(
    plans: Kit, listener: "WorkflowHandle[Listener, None]"
) -> None:
    handle = await started(plans)
    old, new, unknown = "svc__web-0-server__1", "svc__web-0-server__2", "svc__web-7-server__x"
    await record(handle, 0, old)
    await record(handle, 0, new)
    await handle.signal(
        "task_statuses", TaskStatuses(statuses=(report(new, 0, 4, TaskState.RUNNING),))
    )
    await handle.signal(
        "subscribe", SubscribeMessage(owner=listener.id, task_ids=(old, new, unknown))
    )
    heard = await heard_by(listener, 3)
    assert [(one.task_id, one.name, one.state, one.sequence) for one in heard] == [
        (old, "web-0-server", TaskState.GONE, 2**31 - 1),
        (new, "web-0-server", TaskState.RUNNING, 4),
        (unknown, "web-7-server", TaskState.GONE, 2**31 - 1),
    ]
    await handle.terminate()


async def test_a_step_that_follows_the_launch_of_another_hears_what_that_was_told(
    plans: Kit, listener: "WorkflowHandle[Listener, None]"
) -> None:
    """A deploy may come between a launch and the first report of its agent."""
    handle = await started(plans)
    task = "svc__web-0-server__1"
    await record(handle, 0, task)
    await handle.signal("subscribe", SubscribeMessage(owner=listener.id, task_ids=(task,)))
    running = report(task, 0, 0, TaskState.RUNNING).but(told=True)
    await handle.signal("task_statuses", TaskStatuses(statuses=(running,)))
    [heard] = await heard_by(listener, 1)
    assert (heard.task_id, heard.state) == (task, TaskState.RUNNING)
    await handle.terminate()


async def test_a_kill_on_a_dead_agent_is_left_to_the_next_run(plans: Kit) -> None:
    handle = await started(plans, history_limit=50)
    agent = f"dead-{uuid4()}"
    await record(handle, 0, "zombie", agent)
    await record(handle, 0, "newer", agent)
    zombie = report("zombie", 0, 1, TaskState.RUNNING).but(agent=agent, queue=queue_of(agent))
    first = (await handle.describe()).run_id
    async with asyncio.timeout(PATIENCE):
        while (await handle.describe()).run_id == first:  # without a pause, as the agent reports
            await handle.signal("task_statuses", TaskStatuses(statuses=(zombie,)))
    killed: list[KillInput] = []

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        killed.append(request)
        return TaskStatuses()

    async with Worker(plans.client, task_queue=queue_of(agent), activities=[kill]):
        async with asyncio.timeout(PATIENCE):
            while not killed or (await handle.describe()).raw_description.pending_activities:
                await asyncio.sleep(0.05)
    assert {request.task_ids for request in killed} == {("zombie",)}
    await handle.terminate()


async def test_a_task_that_it_never_launched_is_killed_by_a_command_only(plans: Kit) -> None:
    """Its server may have been restored from a backup: the task is newer than the service's
    memory."""
    agent = f"ahead-{uuid4()}"
    killed: list[tuple[str, ...]] = []

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        killed.append(request.task_ids)
        [task] = request.task_ids
        answer = report(task, 0, 1_700_000_000, TaskState.KILLED).but(agent=agent, unknown=True)
        return TaskStatuses(statuses=(answer,))

    handle = await started(plans, history_limit=50)
    await record(handle, 0, "known", agent)
    running = report("known", 0, 1, TaskState.RUNNING).but(agent=agent, queue=queue_of(agent))
    stranger = running.but(task_id="stranger")
    first = (await handle.describe()).run_id
    async with Worker(plans.client, task_queue=queue_of(agent), activities=[kill]):
        async with asyncio.timeout(PATIENCE):
            while (await handle.describe()).run_id == first:
                await handle.signal("task_statuses", TaskStatuses(statuses=(running, stranger)))
        assert [task.task_id for task in (await status(handle)).strangers] == ["stranger"]
        assert not killed
        await handle.execute_update("restart_pod", PodCommand(pod="web-0"))
        await until(lambda: status(handle), lambda status: not status.strangers)
        await until(lambda: tasks(handle), lambda answer: not answer.tasks[0].live)
    assert sorted(killed) == [("known",), ("stranger",)]
    await handle.terminate()


async def test_a_zombie_that_says_no_task_queue_is_left_alone(plans: Kit) -> None:
    """Nobody could kill it, so nothing may wait for that."""
    left = ServiceState(pending_kills=(TaskRef(task_id="left", agent="a1"),))
    handle = await started(plans, state=left)
    agent = f"reachable-{uuid4()}"
    for launch in ("mute", "heard", "newer"):
        await record(handle, 0, launch, agent)
    mute = report("mute", 0, 1, TaskState.RUNNING).but(agent="a1")
    heard = mute.but(task_id="heard", agent=agent, queue=queue_of(agent))
    killed: list[tuple[str, ...]] = []

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        killed.append(request.task_ids)
        return TaskStatuses()

    await handle.signal("task_statuses", TaskStatuses(statuses=(mute, heard)))
    async with Worker(plans.client, task_queue=queue_of(agent), activities=[kill]):
        async with asyncio.timeout(PATIENCE):
            while not killed or (await handle.describe()).raw_description.pending_activities:
                await asyncio.sleep(0.05)
    assert killed == [("heard",)]
    await until(lambda: status(handle), lambda status: status.plans)  # what was left is looked at
    pending = (await handle.describe()).raw_description.pending_activities
    assert "kill" not in [one.activity_type.name for one in pending]
    await handle.terminate()


async def test_a_launch_that_never_came_to_its_agent_can_be_taken_away(plans: Kit) -> None:
    """Such an agent reports nothing about it, now or later: its answer to the kill is all there
    is."""
    agent = f"lossy-{uuid4()}"

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        [task] = request.task_ids
        return TaskStatuses(statuses=(report(task, 0, 1_700_000_000, TaskState.KILLED),))

    handle = await started(plans)
    await record(handle, 0, "svc__web-0-server__1", agent)
    async with Worker(plans.client, task_queue=queue_of(agent), activities=[kill]):
        retired = await handle.execute_update(
            "retire_task", RetireTask(task="web-0-server"), result_type=Retired
        )
    assert retired.dead
    await handle.terminate()


async def test_a_launch_that_nobody_ever_heard_of_keeps_no_service(plans: Kit) -> None:
    """It was recorded just after somebody had removed its agent for good."""
    launch = TaskRecord(
        task_id="svc__web-0-server__1",
        name="web-0-server",
        pod="web",
        index=0,
        task="server",
        goal=Goal.RUNNING,
        resource_set="set",
        agent=f"removed-{uuid4()}",
        queue="removed",
        hostname="host",
        config_id="",
        owner="",
        step="",
        launched=NOW,
    )
    left = ServiceState(tasks={launch.name: launch}, owner=OwnerState(uninstalling=True))
    handle = await started(plans, state=left)
    async with asyncio.timeout(PATIENCE):
        await handle.result()


async def test_a_zombie_of_the_run_before_is_killed(plans: Kit) -> None:
    agent = f"back-{uuid4()}"
    killed: list[tuple[str, ...]] = []

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        killed.append(request.task_ids)
        return TaskStatuses()

    async with Worker(plans.client, task_queue=queue_of(agent), activities=[kill]):
        zombies = (TaskRef(task_id="zombie", agent=agent, queue=queue_of(agent)),)
        handle = await started(plans, state=ServiceState(pending_kills=zombies))
        async with asyncio.timeout(PATIENCE):
            while not killed:
                await asyncio.sleep(0.05)
    assert killed == [("zombie",)]
    await handle.terminate()


@pytest.mark.parametrize(
    ("pod", "tasks", "text"),
    [
        pytest.param("wbe", ("server",), '(found "wbe"); it has: web', id="pod"),
        pytest.param("web", ("srv",), '(found "srv"); it has: server', id="task"),
    ],
)
async def test_a_pod_that_is_not_there_is_not_tried_again(
    plans: Kit, pod: str, tasks: tuple[str, ...], text: str
) -> None:
    handle = await started(plans)
    request = _launch(handle, pod=pod, tasks=tasks)
    with pytest.raises(ApplicationError, match=re.escape(text)) as refused:
        await _pods(plans).prepare_pod(request)
    assert refused.value.non_retryable
    await handle.terminate()


def _pods(plans: Kit) -> PodActivities:
    return PodActivities(plans.client, PoolPlacement(plans.client))


async def _pool(plans: Kit) -> tuple["WorkflowHandle[Any, None]", str]:
    """A Pool in which no agent falls silent, and its name."""
    pool = f"pool-{uuid4()}"
    settings = PoolInput(name=pool, heartbeat=timedelta(seconds=30))
    handle = await plans.client.start_workflow(
        "Pool", settings, id=pool_id(pool), task_queue=plans.queue
    )
    return handle, pool


def _launch(
    handle: "WorkflowHandle[Any, None]",
    pool: str = "default",
    *,
    pod: str = "web",
    tasks: tuple[str, ...] = ("server",),
) -> PreparePodInput:
    """What a step asks for that launches the first instance of a service's pod."""
    context = OwnerContext(
        owner=handle.id.removeprefix("service/"), workflow_id=handle.id, plan="p"
    )
    step = f"step-{uuid4()}"
    return PreparePodInput(
        context=context,
        pods=PodContext(pool=pool),
        step=step,
        element=step,
        pod=pod,
        index=0,
        tasks=tasks,
        attempt="1",
    )


async def test_what_was_reserved_for_an_earlier_attempt_may_be_gone(plans: Kit) -> None:
    """An attempt that comes much later, because all workers were away, asks for itself; and what
    the one before it recorded in another place is a launch of its own."""
    members, pool = await _pool(plans)
    handle = await started(plans)
    request = _launch(handle, pool)
    env = ActivityEnvironment()

    async def attempt(number: int) -> PreparePodResult:
        env.info = dataclasses.replace(env.info, attempt=number)
        return await env.run(_pods(plans).prepare_pod, request)

    gone = BareAgent(plans.client, pool, f"{pool}-a")
    await gone.start()
    first = await attempt(1)
    await gone.stop()
    removed = DeregisterRequest(agent=gone.agent, force=True)
    await members.execute_update("deregister", removed, result_type=DeregisterResult)
    assert "no agent" in str((await attempt(2)).refusals)
    there = BareAgent(plans.client, pool, f"{pool}-b")
    await there.start()
    third, fourth = await attempt(3), await attempt(4)
    assert first.reservation is not None
    assert third.reservation is not None
    assert [first.reservation.agent, third.reservation.agent] == [gone.agent, there.agent]
    assert fourth == third
    [was], [new] = first.tasks, third.tasks
    assert was.task_id != new.task_id
    [recorded] = (await tasks(handle)).tasks
    assert (recorded.task_id, recorded.agent) == (new.task_id, there.agent)
    await there.stop()
    await handle.terminate()
    await members.terminate()


async def test_a_place_on_a_lost_agent_that_nobody_has_heard_of_is_given_back(plans: Kit) -> None:
    """The agent is given up between the reservation and the launch: nothing would ever move the
    pod, for the service knows nothing of it."""
    members, pool = await _pool(plans)
    agent = BareAgent(plans.client, pool, f"{pool}-a")
    await agent.start()
    handle = await started(plans)
    request = _launch(handle, pool)

    class AndLost(PoolPlacement):
        async def reserve(self, request: ReserveInput) -> ReserveResult:
            answer = await super().reserve(request)
            assert answer.at is not None
            lost = AgentLostMessage(agent=agent.agent, pool=pool, at=answer.at)
            await handle.signal("agent_lost", lost)
            return answer

    with pytest.raises(ApplicationError, match="was lost after") as refused:
        await PodActivities(plans.client, AndLost(plans.client)).prepare_pod(request)
    assert not refused.value.non_retryable
    assert not (await members.query("status", result_type=PoolStatus)).reservations
    assert (await _pods(plans).prepare_pod(request)).reservation is not None
    await members.terminate()
    await agent.stop()
    await handle.terminate()


async def test_what_an_unheard_launch_was_to_replace_is_still_in_the_way(plans: Kit) -> None:
    """Its step was interrupted after it was recorded, and before it killed anything."""
    handle = await started(plans)
    await record(handle, 0, "one")
    await handle.signal(
        "task_statuses", TaskStatuses(statuses=(report("one", 0, 1, TaskState.RUNNING),))
    )
    assert [task.task_id for task in (await record(handle, 0, "two")).kill] == ["one"]
    kill = (await record(handle, 0, "three")).kill
    assert sorted(task.task_id for task in kill) == ["one", "two"]
    await handle.terminate()
