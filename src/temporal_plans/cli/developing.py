"""``dev`` and ``demo``: everything on this machine, in one terminal."""

import asyncio
import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from datetime import timedelta
from importlib.resources import as_file, files
from pathlib import Path

from temporalio.client import Plugin
from temporalio.runtime import Runtime

from temporal_plans.cli.explaining import explanation_lines
from temporal_plans.cli.following import follow
from temporal_plans.cli.listing import agent_lines, task_lines
from temporal_plans.cli.local_cluster import LocalCluster, LocalSettings, local_cluster
from temporal_plans.cli.output import complain, say, say_all
from temporal_plans.cli.running import stop_signal
from temporal_plans.client.connection import DEFAULT_ADDRESS
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.loading.env_file import parse_env_file
from temporal_plans.loading.service import load_service
from temporal_plans.messages.cluster import PLANS_QUEUE, PoolStatus
from temporal_plans.messages.service import TaskRecord

DEFAULT_PORT = int(DEFAULT_ADDRESS.rpartition(":")[2])


async def dev(settings: LocalSettings, *, front: int | None = None) -> None:
    """Run a local cluster until Ctrl-C or SIGTERM, or the end of the front (``cli.front``)."""
    say("Starting a Temporal server, a worker and agents ...")
    async with stop_signal(front) as stop:
        async with local_cluster(settings) as cluster:
            say_all(_what_runs(cluster, settings))
            say_all(await _what_does_not(cluster.client))
            say(f"Ctrl-C stops all of it{'' if settings.kill_tasks else ' but the tasks'}.")
            await cluster.run_until(stop)
            say("\nStopping.")
        tasks = "with its tasks (--keep-tasks lets them go on)"
        if not settings.kill_tasks:
            tasks = "but for its tasks, which go on"
        say(f"Stopped, {tasks}. State is kept in {settings.state_dir}.")


def _what_runs(cluster: LocalCluster, settings: LocalSettings) -> list[str]:
    agents = PoolStatus(name="default", agents=cluster.agents)
    lines = ["", f"Temporal  {cluster.address}, namespace default"]
    if cluster.ui_url:
        lines.append(f"UI        {cluster.ui_url}")
    lines += [f"Worker    task queue {PLANS_QUEUE}", f"State     {settings.state_dir}", ""]
    lines += [line.plain for line in agent_lines([agents])]
    lines += ["", "In another terminal, for example:"]
    if cluster.address.rpartition(":")[2] != str(DEFAULT_PORT):
        lines.append(f"  export TEMPORAL_ADDRESS={cluster.address}")
    lines += [
        "  temporal-plan agents",
        "  temporal-plan deploy svc.yml --values svc.env --wait",
        "  temporal-plan show deploy",
        "",
    ]
    return lines


async def _what_does_not(client: PlansClient) -> list[str]:
    """The tasks that were left dead by the last stop."""
    try:
        dead = {service: _dead(await client.tasks(service)) for service in await client.services()}
    except PlansError:
        return []  # it is only a hint
    return [
        line
        for service, count in dead.items()
        if count
        for line in (
            f"Not running: {count} {'task' if count == 1 else 'tasks'} of service {service}. "
            "Its recovery launches them again:",
            f"  temporal-plan show recovery -s {service}",
            "",
        )
    ]


def _dead(tasks: Iterable[TaskRecord]) -> int:
    return sum(task.goal == "RUNNING" and not task.live for task in tasks)


async def demo(
    *,
    state_dir: Path | None,
    keep: bool,
    timeout: timedelta,
    plugins: tuple[Plugin, ...] = (),
    runtime: Runtime | None = None,
    front: int | None = None,
) -> int:
    """Deploy the hello-world service on a cluster of its own, and show it; the exit code."""
    service = demo_service()
    say(f"Starting a Temporal server, a worker and an agent for service {service.name!r} ...")
    with _state(state_dir, keep=keep) as directory:
        async with stop_signal(front) as stop:
            settings = LocalSettings(
                state_dir=directory, ui=False, plugins=plugins, runtime=runtime
            )
            async with local_cluster(settings) as cluster:
                deploying = asyncio.create_task(_deploy(cluster.client, service, timeout))
                stopped = asyncio.create_task(cluster.run_until(stop))
                await asyncio.wait([deploying, stopped], return_when=asyncio.FIRST_COMPLETED)
                if not deploying.done():
                    deploying.cancel()
                    await asyncio.gather(deploying, return_exceptions=True)
                    stopped.result()
                    complain("interrupted before the plan was COMPLETE")
                    return 1
                stopped.cancel()
                code = deploying.result()
                say("\nStopping all of it.")
        say("Nothing is left running." + (f" State is in {directory}." if keep else ""))
        if code == 0:
            say("For a cluster that stays: `temporal-plan dev`.")
        return code


async def _deploy(client: PlansClient, service: ServiceSpec, timeout: timedelta) -> int:
    result = await client.deploy(service)
    say()
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            run = await follow(client.watch(result.plan))
    except TimeoutError:
        complain(f"not COMPLETE within {timeout.total_seconds():g} s")
        say_all(explanation_lines("deploy", await client.explain(result.plan)))
        return 1
    if not run.complete:
        complain(f"the plan ended {run.view.status}")
        return 1
    say()
    say_all(task_lines(await client.tasks(service.name)))
    return 0


def demo_service() -> ServiceSpec:
    """The hello-world service that comes with the package; also in the project's examples."""
    with as_file(files("temporal_plans.cli") / "demo_service") as directory:
        env = parse_env_file((directory / "hello-world.env").read_text(encoding="utf-8"))
        return load_service(directory / "svc.yml", env)


@contextmanager
def _state(state_dir: Path | None, *, keep: bool) -> Generator[Path]:
    """The directory to work in; a temporary one is removed at the end unless it is to be kept."""
    if state_dir is not None:
        yield state_dir
        return
    directory = Path(tempfile.mkdtemp(prefix="temporal-plans-demo-"))
    directory.chmod(0o755)  # tasks may run as another user, who must reach their sandboxes
    try:
        yield directory
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)
