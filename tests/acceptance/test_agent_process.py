"""The whole agent: a process of its own against a real Temporal server, killed and started again.

In the Service's place is a workflow that only answers for its configuration, keeps the statuses
that it is sent, and has activities run.
"""

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import workflow
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.common import RetryPolicy
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from acceptance import agent_program
from acceptance.agent_bench import order, pod_spec, reservation, task_spec, within
from pauses import PATIENCE
from temporal_plans.activities.agent.host.layout import TaskDir, WorkDir
from temporal_plans.activities.agent.host.queue import agent_queue
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.services.spec import (
    PodSpec,
    PortSpec,
    ResourceSet,
    SecretRef,
    ServiceSpec,
)
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.model import Value
from temporal_plans.messages.addresses import PLANS_QUEUE, pool_id
from temporal_plans.messages.pools import AgentView, DeregisterRequest, PoolStatus
from temporal_plans.messages.services import ConfigQuery
from temporal_plans.messages.tasks import (
    KillInput,
    LaunchInput,
    LogChunk,
    ReadLogInput,
    TaskStatuses,
)
from temporal_plans.worker.dev import DevServer
from temporal_plans.workflows.mechanics.guard import PlansInterceptor
from temporal_plans.workflows.pools.pool import PoolWorkflow


class Call(Value):
    """An activity to run on the agent."""

    name: str
    argument: dict[str, Any]
    agent: str


@workflow.defn(name="Recorder")
class Recorder:
    """A Service's face towards an agent."""

    @workflow.init
    def __init__(self, service: ServiceSpec) -> None:
        self._service = service
        self._statuses: list[TaskStatus] = []

    @workflow.run
    async def run(self, service: ServiceSpec) -> None:
        await workflow.wait_condition(lambda: False)

    @workflow.query
    def config(self, query: ConfigQuery) -> ServiceSpec:
        return self._service

    @workflow.query
    def statuses(self) -> TaskStatuses:
        return TaskStatuses(statuses=tuple(self._statuses))

    @workflow.signal
    def task_statuses(self, message: TaskStatuses) -> None:
        self._statuses += message.statuses

    @workflow.update
    async def call(self, call: Call) -> Any:
        return await workflow.execute_activity(
            call.name,
            call.argument,
            task_queue=agent_queue(call.agent),
            start_to_close_timeout=timedelta(seconds=60),
            heartbeat_timeout=timedelta(seconds=2),
            retry_policy=RetryPolicy(
                initial_interval=timedelta(seconds=0.1), maximum_interval=timedelta(seconds=0.5)
            ),
        )


class AgentProcess:
    """One agent's process; started and killed as the test says."""

    def __init__(self, client: Client, address: str, settings: AgentSettings) -> None:
        self.settings = settings
        self.address = address
        self._client = client
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self._process = await _started(self.address, self.settings)

    async def freeze(self) -> None:
        """As if its machine hung."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    async def thaw(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def ended(self) -> int:
        assert self._process is not None
        return await self._process.wait()

    async def kill_9(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.terminate()
        return await within(self._process.wait())

    def directory(self, task_id: str) -> TaskDir:
        return WorkDir(self.settings.work_dir).task(task_id)

    def launches(self) -> list[str]:
        text = WorkDir(self.settings.work_dir).launches.read_text()
        return [line.split()[1] for line in text.splitlines()]


async def _started(address: str, settings: AgentSettings) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, agent_program.__file__, address, settings.model_dump_json()),
        stderr=asyncio.subprocess.PIPE if settings.hostname == STRANGER else None,
    )


STRANGER = "stranger.example"
"""The host of a second agent under the first one's id; what it complains of is read."""


class Cluster:
    """A service, its recorder, and the agent."""

    def __init__(self, client: Client, agent: AgentProcess) -> None:
        self.client = client
        self.agent = agent
        self.service: WorkflowHandle[Any, Any] | None = None

    async def deploy(self, pod: PodSpec) -> None:
        self.service = await self.client.start_workflow(
            "Recorder",
            ServiceSpec(name="hello-world", pods=(pod,)),
            id=f"service/{uuid4().hex}",
            task_queue=PLANS_QUEUE,
        )

    def order(self, pod: PodSpec) -> LaunchInput:
        """An order that leaves it to the agent to ask the service for the pod."""
        assert self.service is not None
        return order(pod, report_to=self.service.id).but(inline=None, config_id="c1")

    async def call(self, name: str, argument: Value) -> Any:
        assert self.service is not None
        call = Call(
            name=name, argument=argument.model_dump(mode="json"), agent=self.agent.settings.id
        )
        return await within(self.service.execute_update("call", call))

    async def launch(self, asked: LaunchInput) -> TaskStatus:
        result = TaskStatuses.model_validate(await self.call("launch", asked))
        return result.statuses[0]

    async def statuses(self) -> tuple[TaskStatus, ...]:
        assert self.service is not None
        found: TaskStatuses = await self.service.query(Recorder.statuses)
        return found.statuses

    async def agent_view(self, holds: Callable[[AgentView], bool]) -> AgentView:
        """The agent as its pool has it, once that holds."""
        pool = self.client.get_workflow_handle(pool_id(self.agent.settings.pool))

        async def look() -> AgentView:
            while True:
                with suppress(RPCError):  # the pool is started by the agent
                    status: PoolStatus = await pool.query("status", result_type=PoolStatus)
                    for view in status.agents:
                        if holds(view):
                            return view
                await asyncio.sleep(0.05)

        return await within(look())

    async def until(self, state: TaskState) -> TaskStatus:
        """The first status of that state that the service has been told."""

        async def look() -> TaskStatus:
            while True:
                for status in await self.statuses():
                    if status.state is state:
                        return status
                await asyncio.sleep(0.05)

        return await within(look())


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def server() -> AsyncGenerator[DevServer, None]:
    async with DevServer() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def client(server: DevServer) -> AsyncGenerator[Client, None]:
    client = await Client.connect(server.address, data_converter=pydantic_data_converter)
    worker = Worker(
        client,
        task_queue=PLANS_QUEUE,
        workflows=[Recorder, PoolWorkflow],
        interceptors=[PlansInterceptor({})],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
    async with worker:
        yield client


@pytest.fixture
async def cluster(
    client: Client, server: DevServer, tmp_path: Path
) -> AsyncGenerator[Cluster, None]:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_text("s3cr3t")
    settings = AgentSettings(
        id=f"agent-{uuid4().hex[:8]}",
        work_dir=tmp_path / "work",
        secrets=(f"file:{tmp_path}/secrets",),
        isolation="accounted",
        kill_tasks_on_exit=True,
        pool=uuid4().hex,
    )
    made = Cluster(client, AgentProcess(client, server.address, settings))
    await made.agent.start()
    try:
        yield made
    finally:
        await made.agent.stop()


WAITS = "while ! test -e go; do sleep 0.02; done; exit 7"


async def test_an_agent_registers_and_says_that_it_lives(cluster: Cluster) -> None:
    info = cluster.agent.settings

    view = await cluster.agent_view(lambda view: True)
    assert (view.info.id, view.state) == (info.id, "ALIVE")
    assert view.info.boot
    assert view.info.resources.cpus > 0
    assert await cluster.agent.stop() == 0


async def test_an_agent_tells_which_ports_are_in_use_when_that_changes(
    cluster: Cluster,
) -> None:
    """And a launch on such a port fails after the pool was told, so that the next gets another."""
    await cluster.agent_view(lambda view: True)
    with listening_below(32000) as port:
        main = ResourceSet(id="main", memory=32, ports=(PortSpec(name="http"),))
        pod = pod_spec(task_spec("sleep 1000"), main=main)
        await cluster.deploy(pod)
        http = ReservedResource(id="p", set="main", kind="port", value=port, name="http")
        asked = cluster.order(pod).but(reservation=reservation(http))
        assert (await cluster.launch(asked)).state is TaskState.FAILED
        view = await cluster.agent_view(lambda view: port in view.info.ports_in_use)
        await cluster.agent.kill_9()
    await cluster.agent.start()
    again = await cluster.agent_view(lambda now: now.info.boot != view.info.boot)
    assert port not in again.info.ports_in_use


def lasting(view: AgentView) -> AgentInfo:
    """An agent without the ports that are in use: other programs of this machine change them."""
    return view.info.but(ports_in_use=())


@contextmanager
def listening_below(limit: int) -> Generator[int]:
    """A port that agents offer by default, with a listener."""
    for port in range(limit, limit - 1000, -1):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            listener.listen()
            yield port
            return


async def test_a_second_agent_under_the_id_of_a_live_one_is_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    first = await cluster.agent_view(lambda view: True)
    settings = cluster.agent.settings.but(work_dir=tmp_path / "other", hostname=STRANGER)
    second = await _started(cluster.agent.address, settings)
    _, complaint = await within(second.communicate())
    assert second.returncode == 1
    told = (first.info.id, first.info.hostname, first.info.boot, "is taken", "alive since")
    assert [text for text in told if text not in complaint.decode()] == []
    assert lasting(await cluster.agent_view(lambda view: True)) == lasting(first)


async def test_a_restart_on_the_same_work_directory_does_not_wait_for_the_heartbeat(
    cluster: Cluster,
) -> None:
    first = await cluster.agent_view(lambda view: True)
    await cluster.agent.kill_9()
    await cluster.agent.start()
    again = await cluster.agent_view(lambda view: view.info.boot != first.info.boot)
    assert (again.state, again.registered) == ("ALIVE", first.registered)
    assert again.info.lineage == first.info.lineage


async def test_another_may_take_the_place_of_a_silent_agent_and_only_one_stays(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Mostly it is the second: but what the server handed to the first one's open poll, before it
    noticed, is silent too, and may make the first one look like the living one when it is back."""
    first = await cluster.agent_view(lambda view: True)
    await cluster.agent.freeze()
    await cluster.agent_view(lambda view: view.state == "UNREACHABLE")
    settings = cluster.agent.settings.but(work_dir=tmp_path / "other", hostname=STRANGER)
    second = await _started(cluster.agent.address, settings)
    try:
        taken = await cluster.agent_view(lambda view: view.info.hostname == STRANGER)
        assert taken.state == "ALIVE"
        assert taken.info.lineage != first.info.lineage
        await cluster.agent.thaw()
        stays = {
            asyncio.create_task(cluster.agent.ended()): lasting(taken),
            asyncio.create_task(second.wait()): lasting(first),
        }
        done, _ = await asyncio.wait(stays, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        [gone] = done
        assert gone.result() == 1
        kept = await cluster.agent_view(lambda view: view.state == "ALIVE")
        assert lasting(kept) == stays[gone]
    finally:
        if second.returncode is None:
            second.terminate()
        await within(second.communicate())


async def test_an_agent_that_was_removed_while_it_ran_registers_as_new(cluster: Cluster) -> None:
    first = await cluster.agent_view(lambda view: True)
    handle = cluster.client.get_workflow_handle(pool_id(cluster.agent.settings.pool))
    await handle.execute_update("deregister", DeregisterRequest(agent=first.info.id))
    again = await cluster.agent_view(lambda view: view.registered > first.registered)
    assert lasting(again) == lasting(first)


async def test_the_true_exit_code_survives_kill_9_of_the_agent(cluster: Cluster) -> None:
    pod = pod_spec(task_spec(WAITS))
    await cluster.deploy(pod)
    asked = cluster.order(pod)
    task_id = asked.tasks[0].task_id
    assert (await cluster.launch(asked)).state is TaskState.RUNNING
    await cluster.agent.kill_9()
    directory = cluster.agent.directory(task_id)
    (directory.sandbox / "go").touch()
    await within(ended(directory))
    await cluster.agent.start()
    failed = await cluster.until(TaskState.FAILED)
    assert (failed.task_id, failed.exit_code, failed.told) == (task_id, 7, False)
    assert cluster.agent.launches() == [task_id]


async def test_a_running_task_is_adopted_after_kill_9_of_the_agent(cluster: Cluster) -> None:
    pod = pod_spec(task_spec(WAITS, kill_grace_period=20))
    await cluster.deploy(pod)
    asked = cluster.order(pod)
    task_id = asked.tasks[0].task_id
    await cluster.launch(asked)
    await cluster.agent.kill_9()
    await cluster.agent.start()
    assert (await cluster.launch(asked)).state is TaskState.RUNNING
    killed = await cluster.call("kill", KillInput(task_ids=(task_id, "other"), reason="enough"))
    assert [s.state for s in TaskStatuses.model_validate(killed).statuses] == [TaskState.KILLED] * 2
    assert (await cluster.until(TaskState.KILLED)).message == "enough (ended by SIGTERM)"
    assert cluster.agent.launches() == [task_id]


async def test_run_task_waits_through_kill_9_of_the_agent(cluster: Cluster) -> None:
    pod = pod_spec(task_spec(WAITS))
    await cluster.deploy(pod)
    asked = order(pod, report_to="")
    running = asyncio.create_task(cluster.call("run_task", asked))
    directory = cluster.agent.directory(asked.tasks[0].task_id)
    await within(started(directory))
    await cluster.agent.kill_9()
    await cluster.agent.start()
    (directory.sandbox / "go").touch()
    status = TaskStatus.model_validate(await running)
    assert (status.state, status.exit_code, status.told) == (TaskState.FAILED, 7, True)
    assert cluster.agent.launches() == [asked.tasks[0].task_id]


async def test_logs_are_followed_to_their_end(cluster: Cluster) -> None:
    pod = pod_spec(
        task_spec(f"echo one; echo oops >&2; {WAITS.replace('; exit', '; echo two; exit')}")
    )
    await cluster.deploy(pod)
    asked = cluster.order(pod)
    task_id = asked.tasks[0].task_id
    await cluster.launch(asked)

    async def read(offset: int, wait: float = 10, stream: str = "stdout") -> LogChunk:
        piece = ReadLogInput(
            task_id=task_id, stream=stream, offset=offset, wait=timedelta(seconds=wait)
        )
        return LogChunk.model_validate(await cluster.call("read_log", piece))

    first = await read(0)
    assert (first.text, first.ended) == ("one\n", False)
    assert (await read(first.next_offset, wait=0)).text == ""
    following = asyncio.create_task(read(first.next_offset))
    (cluster.agent.directory(task_id).sandbox / "go").touch()
    second = await following
    assert second.text == "two\n"
    assert (await read(second.next_offset)).ended
    assert (await read(0, stream="stderr")).text == "oops\n"
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await cluster.call("read_log", ReadLogInput(task_id="none"))
    assert "has no task 'none'" in str(caught.value.cause.__cause__)


async def test_no_secret_is_in_a_history(cluster: Cluster) -> None:
    pod = pod_spec(
        task_spec("test ${#TOKEN} = 6 && sleep 1000"),
        secrets=(SecretRef(name="t", secret="token", env_key="TOKEN"),),
    )
    await cluster.deploy(pod)
    assert (await cluster.launch(cluster.order(pod))).state is TaskState.RUNNING
    await cluster.until(TaskState.RUNNING)
    assert cluster.service is not None
    history = "".join(str(event) for event in (await cluster.service.fetch_history()).events)
    assert "${#TOKEN}" in history
    assert "s3cr3t" not in history


async def ended(directory: TaskDir) -> None:
    while directory.exit is None:
        await asyncio.sleep(0.01)


async def started(directory: TaskDir) -> None:
    while directory.started is None:
        await asyncio.sleep(0.01)
