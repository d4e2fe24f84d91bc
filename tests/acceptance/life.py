"""A service through its life, on a cluster of real processes: what tests say and ask about one."""

import os
import signal
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from acceptance import real_tasks
from acceptance.cluster import PATIENCE, Cluster
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.services import Deployment, PodVerb
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.loading.service import load_service_text
from temporal_plans.messages.plan import PlanView
from temporal_plans.messages.service import DeployResult, PodView


class Life:
    """One service. ``text`` is its file; names in double braces are values of a deployment."""

    def __init__(self, cluster: Cluster, name: str, text: str) -> None:
        self.cluster = cluster
        self.name = name
        self.text = text

    # --- what is done to it ---

    async def deploy(
        self, values: Mapping[str, object] | None = None, *, text: str = "", **how: Any
    ) -> DeployResult:
        client = await self.client()
        return await client.deploy(Deployment(spec=self.spec(values, text=text), **how))

    def spec(self, values: Mapping[str, object] | None = None, *, text: str = "") -> ServiceSpec:
        env = {name: str(value) for name, value in (values or {}).items()}
        return load_service_text(
            text or self.text, {"NAME": self.name, **env}, templates=_no_template
        )

    async def deployed(
        self, values: Mapping[str, object] | None = None, *, text: str = "", **how: Any
    ) -> DeployResult:
        """Deploy, and wait until that is complete."""
        result = await self.deploy(values, text=text, **how)
        assert not result.outcome.refused, result
        await self.until_complete("deploy")
        return result

    async def pod(self, verb: PodVerb, pod: str, *tasks: str) -> None:
        client = await self.client()
        result = await client.command_pod(self.name, verb, pod, tasks=tasks, by="test")
        assert not result.outcome.refused, result

    async def kill(self, task: str) -> None:
        """Kill a task's processes, as the kernel would when memory is short."""
        record = (await self.records())[task]
        for pid in self.cluster.running()[record.task_id]:
            os.kill(pid, signal.SIGKILL)

    # --- what is the case ---

    async def client(self) -> PlansClient:
        return await self.cluster.client()

    async def view(self, plan: str = "deploy") -> PlanView:
        return await self.cluster.view(f"{self.name}/{plan}")

    async def records(self) -> dict[str, TaskRecord]:
        return {task.name: task for task in await (await self.client()).tasks(self.name)}

    async def ids(self) -> dict[str, str]:
        """The newest launch of every task."""
        return {name: record.task_id for name, record in (await self.records()).items()}

    async def pods(self) -> dict[str, PodView]:
        return {pod.name: pod for pod in await (await self.client()).pods(self.name)}

    def processes(self) -> list[str]:
        """The names of its tasks that have processes; one that is in it twice runs twice."""
        mine = [task for task in self.cluster.running() if task.startswith(f"{self.name}__")]
        return sorted(map(real_tasks.name_of, mine))

    # --- waiting ---

    async def until(
        self, what: str, holds: Callable[["Life"], Any], *, within: float = PATIENCE
    ) -> Any:
        """Until this async question about it has a true answer; the answer."""
        return await self.cluster.until(
            f"{self.name}: {what}", lambda: holds(self), bool, within=within
        )

    async def until_complete(self, plan: str = "deploy", *, within: float = PATIENCE) -> PlanView:
        return await self.cluster.until_status(
            f"{self.name}/{plan}", Status.COMPLETE, within=within
        )

    async def until_running(self, *tasks: str, within: float = PATIENCE) -> None:
        """Until exactly these tasks run, as the service and the kernel know it."""

        async def look(life: Life) -> bool:
            records = await life.records()
            running = sorted(
                name
                for name, record in records.items()
                if record.status is not None and record.status.state is TaskState.RUNNING
            )
            return running == sorted(tasks) == life.processes()

        await self.until(f"{', '.join(tasks)} run", look, within=within)

    async def until_relaunched(self, before: Mapping[str, str], *tasks: str) -> dict[str, str]:
        """Until these tasks, and no others, run under other ids; all ids then."""

        async def look(life: Life) -> dict[str, str] | None:
            now = await life.ids()
            changed = sorted(name for name in now if now[name] != before.get(name))
            return now if changed == sorted(tasks) else None

        ids: dict[str, str] = await self.until(f"{', '.join(tasks)} are relaunched", look)
        return ids

    async def until_gone(self, *, within: float = PATIENCE) -> None:
        """Until nothing is left of it: no workflow, no reservation, no process, no volume."""

        async def look() -> bool:
            client = await self.cluster.client()
            pool = await self.cluster.pool()
            return (
                self.name not in await client.services()
                and not any(one.owner == f"service/{self.name}" for one in pool.reservations)
                and not self.processes()
            )

        await self.cluster.until(f"{self.name} is gone", look, bool, within=within)


def _no_template(name: str) -> str:
    raise KeyError(name)


@asynccontextmanager
async def living(cluster: Cluster, name: str, text: str) -> AsyncGenerator[Life]:
    """A service that is torn down afterwards, whatever state it is in."""
    life = Life(cluster, name, text)
    try:
        yield life
    finally:
        await cluster.tear_down(name)


__all__ = ["Life", "PlansError", "PodVerb", "living"]
