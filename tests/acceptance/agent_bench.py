"""A task runner with everything around it real but Temporal: what tests of the agent stand on."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

from temporalio.client import Client

from pauses import PATIENCE
from temporal_plans.activities.agent.host.layout import TaskDir, WorkDir
from temporal_plans.activities.agent.host.pods import PodSource
from temporal_plans.activities.agent.host.preparation import Preparation
from temporal_plans.activities.agent.host.runner import TaskRunner
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.host.status_outbox import StatusOutbox
from temporal_plans.activities.agent.sandbox.rlimits import can_raise_rlimits
from temporal_plans.activities.agent.sandbox.secrets import Secrets
from temporal_plans.activities.mechanics.secrets import secret_provider
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.tasks import LaunchInput

T = TypeVar("T")


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Returns when the condition holds; AssertionError when it doesn't for long."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} s in vain: {what}"
        await asyncio.sleep(0.01)


def task_spec(cmd: str, *, name: str = "server", **more: Any) -> TaskSpec:
    return TaskSpec(name=name, goal=Goal.RUNNING, cmd=cmd, resource_set="main", **more)


def pod_spec(*tasks: TaskSpec, main: ResourceSet | None = None, **more: Any) -> PodSpec:
    resources = main or ResourceSet(id="main", cpus=0.1, memory=32)
    return PodSpec(type="hello", count=1, tasks=tasks, resource_sets=(resources,), **more)


def reservation(*resources: ReservedResource, **more: Any) -> Reservation:
    fields: dict[str, Any] = {"id": "r1", "region": None, "zone": None} | more
    return Reservation(
        owner="service/hello-world",
        pod="hello",
        index=0,
        agent="a1",
        queue="agent/a1",
        hostname="host1",
        resources=resources,
        created=datetime.now(UTC),
        **fields,
    )


def volume(resource_id: str, path: str, set_id: str = "main", source: str = "") -> ReservedResource:
    return ReservedResource(
        id=resource_id, set=set_id, kind="volume", value=10, name=path, source=source
    )


def order(
    pod: PodSpec,
    *,
    task_id: str | None = None,
    held: Reservation | None = None,
    tasks: Mapping[str, str] | None = None,
    **more: Any,
) -> LaunchInput:
    """The order to launch the pod's first task under an id, or ``tasks`` (name by task id), in a
    reservation of its own unless one is ``held``."""
    launches = tasks or {task_id or f"hello__{uuid4().hex}": pod.tasks[0].name}
    fields: dict[str, Any] = {"report_to": "service/hello-world"} | more
    return LaunchInput(
        service="hello-world",
        inline=pod,
        pod=pod.type,
        index=0,
        reservation=held or reservation(id=uuid4().hex),
        tasks=tuple(TaskLaunch(task_id=key, task=name) for key, name in launches.items()),
        **fields,
    )


class Bench:
    """An agent's task runner on a work directory, and everything that it sent."""

    def __init__(self, work_dir: Path, **settings: Any) -> None:
        self.settings = AgentSettings(
            id="a1", work_dir=work_dir, rlimits="lower", isolation="accounted", **settings
        )
        self.sent: list[tuple[str, TaskStatus]] = []
        self.begin()

    def begin(self) -> None:
        """An agent process comes to the work directory."""
        self.work_dir = WorkDir(self.settings.work_dir)
        self.work_dir.acquire()
        secrets = Secrets([secret_provider(text) for text in self.settings.secrets])
        self.runner = TaskRunner(
            self.settings,
            self.work_dir,
            PodSource(cast(Client, None)),  # every order of these tests brings its pod
            Preparation(self.settings, self.work_dir, secrets, None, can_raise_rlimits()),
            lambda delivered: StatusOutbox(self._send, delivered),
            lambda task_id: None,
        )
        self.runner.start()

    async def _send(self, destination: str, statuses: tuple[TaskStatus, ...]) -> None:
        self.sent += [(destination, status) for status in statuses]

    async def restart(self) -> None:
        """The agent process goes and another comes; what it ran goes on."""
        await self.stop()
        self.begin()

    async def stop(self) -> None:
        await self.runner.stop()
        self.work_dir.release()

    async def launch(self, asked: LaunchInput) -> TaskStatus:
        """The first status of the order's only task."""
        (status,) = await self.runner.launch(asked, lambda text: None)
        return status

    async def run(self, asked: LaunchInput) -> TaskStatus:
        """The last status of the order's only task."""
        await self.launch(asked)
        return await self.last(asked.tasks[0].task_id)

    async def last(self, task_id: str) -> TaskStatus:
        return await within(self.runner.wait(task_id))

    async def kill(self, task_id: str, grace: float | None = None) -> TaskStatus:
        period = None if grace is None else timedelta(seconds=grace)
        (status,) = await within(self.runner.kill((task_id,), period, "a test said so"))
        return status

    def directory(self, task_id: str) -> TaskDir:
        return self.work_dir.task(task_id)

    def read(self, task_id: str, name: str = "stdout") -> str:
        return (self.directory(task_id).sandbox / name).read_text()

    def launches(self) -> list[str]:
        """The task ids of all processes that were ever started here, in order."""
        path = self.work_dir.launches
        return [line.split()[1] for line in path.read_text().splitlines()] if path.exists() else []

    def states(self, task_id: str) -> list[TaskState]:
        """What was reported of a task, without repetitions of one report."""
        reports = {
            status.sequence: status.state for _, status in self.sent if status.task_id == task_id
        }
        return [reports[sequence] for sequence in sorted(reports)]


async def within(work: Awaitable[T]) -> T:
    """The result of what should take a fraction of a second; TimeoutError when it doesn't come."""
    async with asyncio.timeout(PATIENCE):
        return await work


@asynccontextmanager
async def bench(**settings: Any) -> AsyncGenerator[Bench, None]:
    """A Bench on a fresh directory that tasks of any user can enter; nothing of it stays."""
    root = Path(tempfile.mkdtemp(prefix="plans-agent-"))
    root.chmod(0o755)
    made = Bench(root / "work", **settings)
    try:
        yield made
    finally:
        await made.runner.kill(tuple(made.runner.task_ids()), timedelta(), "the test is over")
        await made.stop()
        shutil.rmtree(root)
