"""The Service entity on a real server: records, statuses, leases, its plans, long life."""

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import activity, workflow
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowUpdateFailedError,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.testing import ActivityEnvironment, WorkflowEnvironment
from temporalio.worker import Worker

from pauses import PATIENCE, until
from temporal_plans.activities import plans as plan_activities
from temporal_plans.activities import pods
from temporal_plans.activities.offers import reserve_in_pool
from temporal_plans.activities.plans import RUN, STARTER, PlanActivities
from temporal_plans.activities.pods import PodActivities
from temporal_plans.activities.runs import described
from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.commands import Command
from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.plan import ApprovalWork, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.service import Goal, PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import (
    AGENT_LOST,
    AgentLostMessage,
    DeregisterRequest,
    DeregisterResult,
    Holdings,
    KillInput,
    LaunchIntent,
    LaunchOrder,
    PoolInput,
    PoolStatus,
    ReserveInput,
    ReserveResult,
    TaskLaunch,
    TaskRef,
    TaskStatuses,
    agent_queue,
    pool_id,
)
from temporal_plans.messages.plan import (
    CommandLog,
    PlanInput,
    PlanResult,
    PreparePodInput,
    PreparePodResult,
    ServiceContext,
)
from temporal_plans.messages.service import (
    LeaseGrant,
    LeaseRequest,
    OpenPlans,
    PlanReport,
    PlanStart,
    Retired,
    RetireTask,
    ServiceInput,
    ServiceState,
    ServiceStatus,
    StartPlan,
    SubscribeMessage,
    TaskRecord,
    Tasks,
    UninstallRequest,
    Unsent,
)
from temporal_plans.workflows import service_plans
from workflows.plan_kit import Kit, kit
from workflows.pool_programs import BareAgent

NOW = datetime(2026, 1, 1, tzinfo=UTC)

POD_WORK = {"kind": "pod", "pod": "web", "index": 0, "tasks": ["server"]}


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


@pytest_asyncio.fixture(loop_scope="session")
async def listener(plans: Kit) -> AsyncIterator["WorkflowHandle[Listener, None]"]:
    queue = f"listener-{uuid4()}"
    async with Worker(plans.client, task_queue=queue, workflows=[Listener]):
        handle = await plans.client.start_workflow(Listener.run, id=queue, task_queue=queue)
        yield handle
        await handle.terminate()


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


async def tasks(handle: "WorkflowHandle[Any, None]") -> Tasks:
    answer: Tasks = await handle.query("tasks", result_type=Tasks)
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


async def test_a_recovery_that_was_called_off_launches_nothing(plans: Kit) -> None:
    handle = await started(plans)
    await record(handle, 0, "newest", step="svc/deploy/web/web-0:[server]")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "as-it-was", step="svc/recovery/web-0:[server]/web-0:[server]")
    assert "was called off" in str(refused.value.cause)
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
        assert (cause.type, cause.non_retryable, cause.details) == (AGENT_LOST, False, (False,))
        await record(handle, 0, f"{agent}-is-back", agent, reserved=NOW + timedelta(seconds=1))
    await record(handle, 0, "elsewhere", "a3", reserved=NOW - timedelta(seconds=1))
    await handle.terminate()


async def test_a_launch_of_a_pod_that_another_works_on_is_refused(plans: Kit) -> None:
    """Its step was forced while it was being prepared, and has given the pod back since."""
    lease = Lease(plan="recovery", phase="p/q", step=0, pod="web", index=0, tasks=("server",))
    handle = await started(plans, state=ServiceState(leases=LeaseState(held=(lease,))))
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "late", step="p/r/s", owner="p/r/s")
    assert "has lost its pod to p/q" in str(refused.value.cause)
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
    assert "pod web-1 is not wanted any more" in str(refused.value.cause)
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await record(handle, 0, "late", config_id=before, task="other")
    assert "task web-0-other is not wanted any more" in str(refused.value.cause)
    await record(handle, 0, "in-place", config_id=before)
    wanted = await handle.query("wanted", result_type=Holdings)
    assert wanted.keys == (f"{handle.id}:web-0",)
    await handle.terminate()


async def test_what_another_services_plan_says_counts_for_nothing(plans: Kit) -> None:
    """It had the same name, was terminated, and its plan goes on to its end."""
    approval = PhaseSpec(name="p", steps=(StepSpec(name="s", work=ApprovalWork()),))
    handle = await started(plans, plans=(PlanSpec(name="deploy", phases=(approval,)),))
    await until(lambda: status(handle), lambda now: now.plans)
    plan = f"{handle.id.removeprefix('service/')}/deploy"
    await _running(plans, plan)
    over = PlanReport(
        plan="deploy",
        run=1,
        starter="another",
        workflow_id=plan,
        status=Status.COMPLETE,
        open=False,
    )
    await handle.signal("plan_changed", over)
    assert (await status(handle)).plans[0].open
    await handle.signal("plan_changed", over.but(starter=str(handle.first_execution_run_id)))
    assert not (await status(handle)).plans[0].open
    await plans.client.get_workflow_handle(plan).terminate()
    await handle.terminate()


async def test_a_run_that_is_over_is_not_begun_again(plans: Kit) -> None:
    """An attempt to start it that was frozen goes on after all."""
    plan, env = f"plan-{uuid4()}", ActivityEnvironment()
    env.info = dataclasses.replace(env.info, task_queue=plans.queue)
    memo = {RUN: 2, STARTER: "us"}
    handle = await plans.client.start_workflow(
        "Plan", _waiting(), id=plan, task_queue=plans.queue, memo=memo
    )
    await handle.terminate()
    for run in (1, 2):
        start = PlanStart(workflow_id=plan, run=run, starter="us", input=_waiting())
        await env.run(PlanActivities(plans.client).start_plan, start)
    again = await described(plans.client, plan)
    assert again is not None
    assert again.run_id == handle.result_run_id
    # A Service that was reset counts on from there: run 1 is another one now.
    anew = PlanStart(workflow_id=plan, run=1, starter="us", at=datetime.now(UTC), input=_waiting())
    await env.run(PlanActivities(plans.client).start_plan, anew)
    again = await described(plans.client, plan)
    assert again is not None
    assert again.run_id != handle.result_run_id
    await plans.client.get_workflow_handle(plan).terminate()


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
    plan = (await status(handle)).plans[0]
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
    heard = await _heard(listener, 3)
    assert [(one.task_id, one.name, one.state, one.sequence) for one in heard] == [
        (old, "web-0-server", TaskState.GONE, 2**31 - 1),
        (new, "web-0-server", TaskState.RUNNING, 4),
        (unknown, "web-7-server", TaskState.GONE, 2**31 - 1),
    ]
    await handle.terminate()


async def _heard(listener: "WorkflowHandle[Listener, None]", number: int) -> tuple[TaskStatus, ...]:
    heard = await until(
        lambda: listener.query(Listener.statuses), lambda heard: len(heard.statuses) >= number
    )
    return heard.statuses


async def test_what_the_run_before_left_is_sent_first(
    plans: Kit, listener: "WorkflowHandle[Listener, None]"
) -> None:
    status = report("one", 0, 1, TaskState.RUNNING)
    grant = LeaseGrant(granted={0: 3}, held={1: "svc/deploy/p"})
    left = (
        Unsent(receiver="nobody", signal="leased", message=grant),
        Unsent(receiver=listener.id, signal="leased", message=grant),
        Unsent(
            receiver=listener.id,
            signal="task_statuses",
            message=TaskStatuses(statuses=(status,)),
        ),
    )
    handle = await started(plans, state=ServiceState(unsent=left))
    assert await _heard(listener, 1) == (status,)
    assert await listener.query(Listener.grants) == [grant]
    await handle.terminate()


async def test_a_kill_on_a_dead_agent_is_left_to_the_next_run(plans: Kit) -> None:
    handle = await started(plans, history_limit=50)
    agent = f"dead-{uuid4()}"
    zombie = report("zombie", 0, 1, TaskState.RUNNING).but(agent=agent)
    first = (await handle.describe()).run_id
    async with asyncio.timeout(PATIENCE):
        while (await handle.describe()).run_id == first:  # without a pause, as the agent reports
            await handle.signal("task_statuses", TaskStatuses(statuses=(zombie,)))
    killed: list[KillInput] = []

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        killed.append(request)
        return TaskStatuses()

    async with Worker(plans.client, task_queue=agent_queue(agent), activities=[kill]):
        async with asyncio.timeout(PATIENCE):
            while not killed or (await handle.describe()).raw_description.pending_activities:
                await asyncio.sleep(0.05)
    assert {request.task_ids for request in killed} == {("zombie",)}
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
    async with Worker(plans.client, task_queue=agent_queue(agent), activities=[kill]):
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
        hostname="host",
        config_id="",
        owner="",
        step="",
        launched=NOW,
    )
    left = ServiceState(tasks={launch.name: launch}, uninstalling=True)
    handle = await started(plans, state=left)
    async with asyncio.timeout(PATIENCE):
        await handle.result()


LONG = "x" * 2000


def _wants(phase: str) -> dict[str, Any]:
    want = {"plan": "p", "phase": phase, "step": 0, "pod": "web", "index": 7, "tasks": ["server"]}
    return {"phase": phase, "wants": [want]}


REFUSED_BY_THE_SERVER = [
    pytest.param("leases", _wants(""), id="signal-to-nobody"),
    pytest.param("leases", _wants(LONG), id="signal-to-a-long-id"),
    pytest.param("subscribe", {"owner": "", "task_ids": ["one"]}, id="owner-nobody"),
    pytest.param("subscribe", {"owner": LONG, "task_ids": ["one"]}, id="owner-a-long-id"),
    pytest.param(
        "subscribe",
        {"owner": "x", "task_ids": [f"t{i}" for i in range(20_000)]},
        id="a-long-answer",
    ),
    pytest.param(
        "task_statuses",
        {
            "statuses": [
                {
                    "task_id": "two",
                    "name": "web-0-server",
                    "state": "RUNNING",
                    "sequence": 1,
                    "at": "2026-01-01T00:00:00Z",
                    "agent": LONG,
                }
            ]
        },
        id="kill-on-a-long-queue",
    ),
]


@pytest.mark.parametrize(("signal", "message"), REFUSED_BY_THE_SERVER)
async def test_no_message_has_it_do_what_the_server_refuses(
    plans: Kit, signal: str, message: dict[str, Any]
) -> None:
    """The server would refuse that at every retry, for ever."""
    handle = await started(plans)
    await record(handle, 0, "one")
    await handle.signal(signal, message)
    runs = report("one", 0, 1, TaskState.RUNNING)
    await handle.signal("task_statuses", TaskStatuses(statuses=(runs,)))
    async with asyncio.timeout(PATIENCE):
        for index in (1, 2, 3):  # what it answers to the signal is sent by and by
            await record(handle, index, f"later-{index}")
            await asyncio.sleep(0.3)
    await handle.terminate()


async def test_every_uninstall_is_in_the_log(plans: Kit) -> None:
    """Also one that comes when the service is going already."""
    agent = f"away-{uuid4()}"
    handle = await started(plans)
    await record(handle, 0, "one", agent)  # which keeps it from going
    for reason in ("first", "again"):
        await handle.execute_update("uninstall", UninstallRequest(by="ann", reason=reason))
    log: CommandLog = await handle.query("log", result_type=CommandLog)
    said = [(entry.reason, entry.outcome.code) for entry in log.entries]
    assert said == [("first", 200), ("again", 208)]
    await handle.terminate()


async def test_a_zombie_of_the_run_before_is_killed(plans: Kit) -> None:
    agent = f"back-{uuid4()}"
    killed: list[tuple[str, ...]] = []

    @activity.defn(name="kill")
    async def kill(request: KillInput) -> TaskStatuses:
        killed.append(request.task_ids)
        return TaskStatuses()

    async with Worker(plans.client, task_queue=agent_queue(agent), activities=[kill]):
        zombies = (TaskRef(task_id="zombie", agent=agent),)
        handle = await started(plans, state=ServiceState(doomed=zombies))
        async with asyncio.timeout(PATIENCE):
            while not killed:
                await asyncio.sleep(0.05)
    assert killed == [("zombie",)]
    await handle.terminate()


async def test_parameters_that_a_plan_does_not_allow_are_refused(plans: Kit) -> None:
    parameters = [{"name": "NAME", "required": True, "pattern": "[a-z]+"}]
    plan = PlanSpec.model_validate({"name": "deploy", "parameters": parameters, "phases": []})
    handle = await started(plans, plans=(plan,))
    await until(lambda: status(handle), lambda status: status.plans)
    for given, problem in (
        ({}, "parameters.NAME: the plan needs this parameter"),
        ({"NAME": "1"}, "parameters.NAME: does not match [a-z]+"),
        ({"NAME": "a", "NOPE": "1"}, "parameters.NOPE: the plan declares no such parameter"),
    ):
        with pytest.raises(WorkflowUpdateFailedError) as refused:
            await handle.execute_update("start_plan", StartPlan(plan="deploy", parameters=given))
        assert problem in str(refused.value.cause)
    await handle.terminate()


async def test_a_plan_that_is_over_is_closed_whatever_its_memo(plans: Kit) -> None:
    over, runs = f"over-{uuid4()}", f"runs-{uuid4()}"
    for plan in (over, runs):
        await plans.client.start_workflow("Plan", _waiting(), id=plan, task_queue=plans.queue)
    await plans.client.get_workflow_handle(over).terminate()
    asked = OpenPlans(workflow_ids=(over, runs, "never was"))
    answer = await PlanActivities(plans.client).closed_plans(asked)
    assert answer.workflow_ids == (over, "never was")
    await plans.client.get_workflow_handle(runs).terminate()


@pytest.mark.parametrize(
    ("memo", "text"),
    [
        pytest.param({}, "which no service started", id="nobody's"),
        pytest.param({RUN: 1, STARTER: "me"}, "which is the plan's run 1", id="earlier-run"),
        pytest.param({RUN: 2, STARTER: "it"}, "which run it of a service started", id="another's"),
        pytest.param({RUN: 2, STARTER: "me"}, "", id="this-start"),
    ],
)
async def test_a_plan_is_started_unless_another_is_in_the_way(
    plans: Kit, memo: dict[str, Any], text: str
) -> None:
    plan = f"plan-{uuid4()}"
    handle = await plans.client.start_workflow(
        "Plan", _waiting(), id=plan, task_queue=plans.queue, memo=memo
    )
    env = ActivityEnvironment()
    env.info = dataclasses.replace(env.info, workflow_run_id="me", task_queue=plans.queue)
    start = PlanStart(workflow_id=plan, run=2, input=_waiting())
    activities = PlanActivities(plans.client)
    if text:
        with pytest.raises(ApplicationError, match=text) as refused:
            await env.run(activities.start_plan, start)
        assert not refused.value.non_retryable
        assert plan in refused.value.message
    else:
        await env.run(activities.start_plan, start)
    if "the plan's run" in text:  # its Service takes it for over, so nobody else will end it
        ended = await asyncio.wait_for(handle.result(), PATIENCE)
        assert PlanResult.model_validate(ended).superseded
        await env.run(activities.start_plan, start)
    await plans.client.get_workflow_handle(plan).terminate()


def _waiting() -> PlanInput:
    return PlanInput.model_validate(
        {"name": "p", "phases": {"a": {"steps": {"s": {"approval": {}}}}}}
    )


@pytest.mark.parametrize(
    ("pod", "tasks", "text"),
    [
        pytest.param("wbe", ("server",), "no pod 'wbe'; it has: web", id="pod"),
        pytest.param("web", ("srv",), "no task 'srv'; it has: server", id="task"),
    ],
)
async def test_a_pod_that_is_not_there_is_not_tried_again(
    plans: Kit, pod: str, tasks: tuple[str, ...], text: str
) -> None:
    handle = await started(plans)
    context = ServiceContext(
        service=handle.id.removeprefix("service/"), workflow_id=handle.id, config_id="", plan="p"
    )
    request = PreparePodInput(
        context=context, step="s", element="s", pod=pod, index=0, tasks=tasks, attempt="1"
    )
    with pytest.raises(ApplicationError, match=text) as refused:
        await PodActivities(plans.client).prepare_pod(request)
    assert refused.value.non_retryable
    await handle.terminate()


async def test_what_was_reserved_for_an_earlier_attempt_may_be_gone(plans: Kit) -> None:
    """An attempt that comes much later, because all workers were away, asks for itself; and what
    the one before it recorded in another place is a launch of its own."""
    pool, step = f"pool-{uuid4()}", f"step-{uuid4()}"
    settings = PoolInput(name=pool, heartbeat=timedelta(seconds=30))
    members = await plans.client.start_workflow(
        "Pool", settings, id=pool_id(pool), task_queue=plans.queue
    )
    handle = await started(plans)
    context = ServiceContext(
        service=handle.id.removeprefix("service/"),
        workflow_id=handle.id,
        config_id="",
        plan="p",
        pool=pool,
    )
    request = PreparePodInput(
        context=context, step=step, element=step, pod="web", index=0, tasks=("server",), attempt="1"
    )
    env = ActivityEnvironment()

    async def attempt(number: int) -> PreparePodResult:
        env.info = dataclasses.replace(env.info, attempt=number)
        return await env.run(PodActivities(plans.client).prepare_pod, request)

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


async def test_a_place_on_a_lost_agent_that_nobody_has_heard_of_is_given_back(
    plans: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent is given up between the reservation and the launch: nothing would ever move the
    pod, for the service knows nothing of it."""
    pool, step = f"pool-{uuid4()}", f"step-{uuid4()}"
    settings = PoolInput(name=pool, heartbeat=timedelta(seconds=30))
    members = await plans.client.start_workflow(
        "Pool", settings, id=pool_id(pool), task_queue=plans.queue
    )
    agent = BareAgent(plans.client, pool, f"{pool}-a")
    await agent.start()
    handle = await started(plans)
    context = ServiceContext(
        service=handle.id.removeprefix("service/"),
        workflow_id=handle.id,
        config_id="",
        plan="p",
        pool=pool,
    )
    request = PreparePodInput(
        context=context, step=step, element=step, pod="web", index=0, tasks=("server",), attempt="1"
    )

    async def and_lost(client: Client, asked: ReserveInput) -> ReserveResult:
        answer = await reserve_in_pool(client, asked)
        assert answer.at is not None
        lost = AgentLostMessage(agent=agent.agent, pool=pool, at=answer.at)
        await handle.signal("agent_lost", lost)
        return answer

    monkeypatch.setattr(pods, "reserve_in_pool", and_lost)
    with pytest.raises(ApplicationError, match="was given up since") as refused:
        await PodActivities(plans.client).prepare_pod(request)
    assert not refused.value.non_retryable
    assert not (await members.query("status", result_type=PoolStatus)).reservations
    monkeypatch.undo()
    assert (await PodActivities(plans.client).prepare_pod(request)).reservation is not None
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


async def test_a_plan_that_is_back_is_started(plans: Kit) -> None:
    """It had a run before it was dropped, whose number must not be given again."""
    approval = PhaseSpec(name="p", steps=(StepSpec(name="s", work=ApprovalWork()),))
    backup = PlanSpec(name="backup", phases=(approval,))
    deploy = PlanSpec(name="deploy", phases=(approval,))
    handle = await started(plans, plans=(deploy, backup))
    name = handle.id.removeprefix("service/")

    async def deployed(*made: PlanSpec) -> None:
        changed = ServiceInput(spec=spec(name), plans=made)
        answer = await handle.execute_update("deploy", changed)
        assert answer["outcome"]["code"] == 200

    first = await _running(plans, f"{name}/backup")
    await deployed(deploy)
    end = time.monotonic() + 20
    while any(plan.name == "backup" for plan in (await status(handle)).plans):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    await deployed(deploy, backup)
    assert await _running(plans, f"{name}/backup", other_than=first)
    await handle.terminate()


async def test_a_plan_that_begins_while_others_are_looked_after_is_open(
    plans: Kit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looked for it a moment before it was there saw its former run, which is over."""
    approval = PhaseSpec(name="p", steps=(StepSpec(name="s", work=ApprovalWork()),))
    deploy, backup = (PlanSpec(name=name, phases=(approval,)) for name in ("deploy", "backup"))
    handle = await started(plans, plans=(deploy, backup))
    plans.not_replayed.append(handle.id)  # other settings than a replay would have
    name = handle.id.removeprefix("service/")
    await _running(plans, f"{name}/backup")
    await _running(plans, f"{name}/deploy")
    forced = Command(reason="to its end")
    plan = plans.client.get_workflow_handle(f"{name}/deploy")
    await plan.execute_update("force_complete", forced)
    await until(lambda: status(handle), lambda now: not now.plans[0].open)

    looked = asyncio.Event()
    begun = await _finished(handle, "start_plan")

    async def looking(client: Client, workflow_id: str) -> Any:
        found = await described(client, workflow_id)
        if not workflow_id.startswith(f"{name}/"):
            return found
        if activity.info().activity_type == "start_plan":
            await asyncio.wait_for(looked.wait(), PATIENCE)
        elif activity.info().activity_type == "closed_plans":
            looked.set()
            await until(lambda: _finished(handle, "start_plan"), lambda done: done > begun)
        return found

    monkeypatch.setattr(plan_activities, "described", looking)
    monkeypatch.setattr(service_plans, "LOOK_AFTER_LEAVING", timedelta(0))
    two = backup.but(phases=(approval, approval.but(name="q")))  # it has to leave for that
    answer = await handle.execute_update(
        "deploy", ServiceInput(spec=spec(name), plans=(deploy, two))
    )
    assert answer["outcome"]["code"] == 200
    await until(lambda: _finished(handle, "closed_plans"), lambda done: done > 0)
    await until(lambda: status(handle), lambda now: now.plans[1].open)
    assert (await status(handle)).plans[0].open
    await handle.terminate()


async def _finished(handle: "WorkflowHandle[Any, None]", name: str) -> int:
    """How many activities of that type it has had."""
    types: dict[int, str] = {}
    done = 0
    async for event in handle.fetch_history_events():
        scheduled = event.activity_task_scheduled_event_attributes
        types[event.event_id] = scheduled.activity_type.name
        over = event.activity_task_completed_event_attributes.scheduled_event_id
        done += bool(over) and types[over] == name
    return done


async def _running(plans: Kit, workflow_id: str, other_than: str = "") -> str:
    """The run id of a workflow that runs, once it does."""
    end = time.monotonic() + 20
    while True:
        try:
            described = await plans.client.get_workflow_handle(workflow_id).describe()
        except RPCError:
            described = None
        runs = described is not None and described.status is WorkflowExecutionStatus.RUNNING
        if described is not None and runs and described.run_id not in (None, other_than):
            return str(described.run_id)
        assert time.monotonic() < end, workflow_id
        await asyncio.sleep(0.05)
