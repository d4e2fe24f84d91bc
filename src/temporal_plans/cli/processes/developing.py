"""``dev`` and ``demo``: a whole cluster on this machine, in one terminal."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from importlib.resources import as_file, files
from pathlib import Path

from temporalio.client import Plugin
from temporalio.runtime import Runtime

from temporal_plans.cli.actions.running import stop_signal
from temporal_plans.cli.processes.demo_state import demo_state
from temporal_plans.cli.processes.local_cluster import LocalCluster, LocalSettings, local_cluster
from temporal_plans.cli.terminal.explaining import explanation_lines
from temporal_plans.cli.terminal.following import follow
from temporal_plans.cli.terminal.listing import agent_lines, task_lines
from temporal_plans.cli.terminal.output import print_error, print_line, print_lines
from temporal_plans.client.errors import PlansError
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.connection import DEFAULT_ADDRESS
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.loading.services.service import load_service
from temporal_plans.loading.text.env_file import parse_env_file
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.messages.pools import PoolStatus

DEFAULT_PORT = int(DEFAULT_ADDRESS.rpartition(":")[2])


async def dev(settings: LocalSettings, *, proxy: int | None = None) -> None:
    """Run a local cluster until Ctrl-C or SIGTERM, or the end of the proxy (``signal_proxy``)."""
    parts = "a Temporal server, a worker" if settings.worker else "a Temporal server"
    print_line(f"Starting {parts} and agents ...")
    async with stop_signal(proxy) as stop:
        async with local_cluster(settings) as cluster:
            print_lines(_cluster_lines(cluster, settings))
            if settings.worker:
                print_lines(await _dead_task_lines(cluster.client))
            print_line(
                f"Ctrl-C stops everything{'' if settings.kill_tasks else ' except the tasks'}."
            )
            await cluster.run_until(stop)
            print_line("\nStopping.")
        tasks = "with its tasks (--keep-tasks leaves them running)"
        if not settings.kill_tasks:
            tasks = "except its tasks, which keep running"
        print_line(f"Stopped, {tasks}. State is kept in {settings.state_dir}.")


def _cluster_lines(cluster: LocalCluster, settings: LocalSettings) -> list[str]:
    agents = PoolStatus(name="default", agents=cluster.agents)
    lines = ["", f"Temporal  {cluster.address}, namespace default"]
    if cluster.ui_url:
        lines.append(f"UI        {cluster.ui_url}")
    own = f"none: run yours on task queue {PLANS_QUEUE}; the agents register when it runs"
    worker = f"task queue {PLANS_QUEUE}" if settings.worker else own
    lines += [f"Worker    {worker}", f"State     {settings.state_dir}", ""]
    if settings.worker:
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


async def _dead_task_lines(client: PlansClient) -> list[str]:
    """Return hints about tasks that the last stop killed, and that do not run again yet."""
    try:
        dead = {
            service: _dead_count(await client.tasks(service)) for service in await client.services()
        }
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


def _dead_count(tasks: Iterable[TaskRecord]) -> int:
    return sum(task.goal == "RUNNING" and not task.runs for task in tasks)


async def demo(
    *,
    state_dir: Path | None,
    keep: bool,
    timeout: timedelta,
    plugins: tuple[Plugin, ...] = (),
    runtime: Runtime | None = None,
    proxy: int | None = None,
) -> int:
    """Deploy the hello-world service on its own cluster and show it; return the exit code."""
    service = demo_service()
    print_line(
        f"Starting a Temporal server, a worker and an agent for service {service.name!r} ..."
    )
    with demo_state(state_dir, keep=keep) as directory:
        async with stop_signal(proxy) as stop:
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
                    print_error("interrupted before the plan was COMPLETE")
                    return 1
                stopped.cancel()
                code = deploying.result()
                print_line("\nStopping everything.")
        print_line("Nothing is left running." + (f" State is in {directory}." if keep else ""))
        if code == 0:
            print_line("To keep a cluster running, use `temporal-plan dev`.")
        return code


async def _deploy(client: PlansClient, service: ServiceSpec, timeout: timedelta) -> int:
    result = await client.deploy(service)
    print_line()
    try:
        async with asyncio.timeout(timeout.total_seconds()):
            run = await follow(client.watch(result.plan))
    except TimeoutError:
        print_error(f"not COMPLETE within {timeout.total_seconds():g} s")
        print_lines(explanation_lines("deploy", await client.explain(result.plan)))
        return 1
    if not run.complete:
        print_error(f"the plan ended {run.view.status}")
        return 1
    print_line()
    print_lines(task_lines(await client.tasks(service.name)))
    return 0


def demo_service() -> ServiceSpec:
    """Load the hello-world service of the package, which is also in the project's examples."""
    with as_file(files("temporal_plans.cli") / "demo_service") as directory:
        env = parse_env_file((directory / "hello-world.env").read_text(encoding="utf-8"))
        return load_service(directory / "svc.yml", env)
