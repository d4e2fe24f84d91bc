"""A service through its life, on a cluster of real processes: what tests say and ask about one."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from acceptance import real_tasks
from acceptance.cluster import Cluster, statuses, steps
from temporal_plans.activities.agent.supervisor.environ import environ_of
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.verbs.services import Deployment
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Outcome, Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.loading.services.service import load_service_text
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.services import DeployResult, PodView

LOOP = "sleep 3600"
"""The command of a task that runs for ever."""

READY = "{cmd: 'test -e ready', interval: 0.5, timeout: 5}"
"""A readiness check that passes once the test has made the file ``ready`` in the sandbox."""

QUICK = Backoff(initial=timedelta(seconds=0.2), factor=1)
"""The back-off of services whose tests are not about back-off."""


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
        how = {"spec": self.spec(values, text=text), "backoff": QUICK, "by": "test", **how}
        return await client.deploy(Deployment(**how))

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

    async def command(
        self, verb: Verb, plan: str, phase: str = "", step: str = "", **parameters: str
    ) -> Outcome:
        """A command to one of its plans; one that is refused raises."""
        return await self.cluster.command(f"{self.name}/{plan}", verb, phase, step, **parameters)

    async def touch(self, task: str, file: str) -> None:
        """Make a file in a task's sandbox; waits until the task runs."""
        directory: Path = await self.until(f"{task} runs", lambda life: life.sandbox(task))
        await asyncio.to_thread((directory / file).touch)

    async def make_ready(self, *tasks: str) -> None:
        """Let the readiness checks (READY) of these tasks pass."""
        for task in tasks:
            await self.touch(task, "ready")

    async def kill(self, task: str) -> None:
        """Kill a task's processes, as the kernel would when memory is short."""
        real_tasks.kill((await self.records())[task].task_id, self.cluster.work_dirs)

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

    async def held(self, pod: str) -> Reservation:
        """What a pod instance holds."""
        reservation = (await self.pods())[pod].reservation
        assert reservation is not None, f"{pod} holds nothing"
        return reservation

    async def status(self, step: str, plan: str = "deploy") -> Status:
        return steps(await self.view(plan))[step].status

    async def sandbox(self, task: str) -> Path | None:
        """The sandbox of a task's newest launch, when that runs."""
        record = (await self.records()).get(task)
        if record is None or record.task_id not in self.cluster.running():
            return None
        tasks = self.cluster.work_dir(record.agent) / "tasks"
        return next((found for found in tasks.glob(f"{record.task_id}*/sandbox")), None)

    async def environment(self, task: str) -> dict[str, str]:
        """The environment that a running task really has."""
        record = (await self.records())[task]
        pid = min(self.cluster.running()[record.task_id])
        entries = environ_of(pid).decode().split("\0")
        return dict(entry.split("=", 1) for entry in entries if entry)

    def processes(self) -> list[str]:
        """The names of its tasks that have processes; one that is in it twice runs twice."""
        prefix = f"{self.name.strip('/').replace('/', '.')}__"
        mine = [task for task in self.cluster.running() if task.startswith(prefix)]
        return sorted(map(real_tasks.name_of, mine))

    # --- waiting ---

    async def until(self, what: str, holds: Callable[["Life"], Any]) -> Any:
        """Until this async question about it has a true answer; the answer."""
        return await self.cluster.until(f"{self.name}: {what}", lambda: holds(self), bool)

    async def until_complete(self, plan: str = "deploy") -> PlanView:
        return await self.cluster.until_status(f"{self.name}/{plan}", Status.COMPLETE)

    async def until_step(
        self, step: str, status: Status, plan: str = "deploy", *, saying: str = ""
    ) -> None:
        """Until a step reads this, and its message holds that text."""

        def holds(view: PlanView) -> bool:
            found = steps(view).get(step)
            return found is not None and found.status is status and saying in found.message

        await self.cluster.until_plan(f"{self.name}/{plan}", f"{step} is {status} {saying}", holds)

    async def until_shown(self, tree: str, plan: str = "deploy") -> None:
        """Until the plan reads so (see ``shown``), and stays so for a while."""

        def holds(view: PlanView) -> bool:
            return shown(view) == tree

        await self.cluster.until_plan(f"{self.name}/{plan}", f"shows {tree}", holds)
        await self.cluster.stays(f"{self.name}/{plan}", f"shows {tree}", holds, looks=5)

    async def until_running(self, *tasks: str) -> None:
        """Until exactly these tasks run, as the service and the kernel know it."""

        async def look(life: Life) -> bool:
            records = await life.records()
            running = sorted(
                name
                for name, record in records.items()
                if record.status is not None and record.status.state is TaskState.RUNNING
            )
            return running == sorted(tasks) == life.processes()

        await self.until(f"{', '.join(tasks)} run", look)

    async def until_relaunched(self, before: Mapping[str, str], *tasks: str) -> dict[str, str]:
        """Until these tasks, and no others, run under other ids; all ids then."""

        async def look(life: Life) -> dict[str, str] | None:
            now = await life.ids()
            changed = sorted(name for name in now if now[name] != before.get(name))
            return now if changed == sorted(tasks) else None

        ids: dict[str, str] = await self.until(f"{', '.join(tasks)} are relaunched", look)
        return ids

    async def until_gone(self) -> None:
        """Until nothing is left of it: no workflow, no reservation, no process, no volume."""

        async def look() -> bool:
            client = await self.cluster.client()
            pool = await self.cluster.pool()
            return (
                self.name not in await client.services()
                and not any(one.owner == f"service/{self.name}" for one in pool.reservations)
                and not self.processes()
            )

        await self.cluster.until(f"{self.name} is gone", look, bool)


def shown(view: PlanView) -> str:
    """``hello C,W,P WAITING; world C COMPLETE; WAITING``: phases, and last the plan."""
    phases = [f"{phase.name} {statuses(phase)} {phase.status}" for phase in view.phases]
    return "; ".join([*phases, str(view.status)])


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


__all__ = ["LOOP", "QUICK", "READY", "Life", "PlansError", "PodVerb", "living", "shown"]
