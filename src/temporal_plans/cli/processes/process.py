"""Long-running processes: logging, telemetry, start and stop."""

import asyncio
import logging
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.mechanics.secrets import secret_provider
from temporal_plans.cli.actions.running import stop_signal
from temporal_plans.cli.inputs.flags import ConnectionFlags
from temporal_plans.cli.processes.core_lines import logging_runtime
from temporal_plans.cli.terminal.output import print_error, print_line
from temporal_plans.client.temporal.connection import Connection, connect
from temporal_plans.messages.addresses import cluster_queue
from temporal_plans.worker.telemetry import SETTING, Telemetry, telemetry

if TYPE_CHECKING:
    from temporal_plans.worker.spoke import SpokeSettings

_CLUSTER_TIMEOUT = 10.0
"""Seconds in which an API server should answer a worker that starts."""


@contextmanager
def process(name: str, *, log_level: str) -> Generator[Telemetry]:
    """Log to standard error, and send telemetry if the environment sets its address.

    ``log_level`` is for our own lines. Warnings and worse of Temporal's SDK are logged, too; with
    the level ``error`` only errors.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("temporal_plans").setLevel(log_level.upper())
    if log_level == "error":
        logging.getLogger().setLevel(logging.ERROR)
    sending = telemetry(os.environ.get(SETTING), name)
    if sending.runtime is None:
        sending = replace(sending, runtime=logging_runtime())
    try:
        yield sending
    finally:
        sending.shutdown()


@dataclass(frozen=True)
class WorkerSettings:
    """What a worker serves. ``task_queue`` is that of plans, None for none; ``secrets`` are texts
    of providers."""

    task_queue: str | None
    clusters: tuple[ClusterAccess, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def queues(self) -> str:
        """The task queues, for people."""
        plans = [self.task_queue] if self.task_queue else []
        return ", ".join([*plans, *(cluster_queue(access.name) for access in self.clusters)])


async def run_worker_process(
    flags: ConnectionFlags, sending: Telemetry, settings: WorkerSettings
) -> None:
    """Run a worker until Ctrl-C or SIGTERM."""
    from temporal_plans.worker.main import run_worker  # slow modules that an agent does not need
    from temporal_plans.worker.plugin import PlansPlugin

    plugin = PlansPlugin(
        clusters=settings.clusters, secrets=[secret_provider(text) for text in settings.secrets]
    )
    async with stop_signal() as stop:
        client = await connect(
            flags.connection(), plugins=[plugin, *sending.plugins], runtime=sending.runtime
        )
        server = client.service_client.config.target_host
        several = "s" if "," in settings.queues else ""
        print_line(
            f"Worker on task queue{several} {settings.queues} of {server}, namespace "
            f"{client.namespace}."
        )
        clusters = [access.name for access in settings.clusters]
        telling = asyncio.create_task(_tell_of_clusters(settings.clusters))
        try:
            await run_worker(client, stop=stop, task_queue=settings.task_queue, clusters=clusters)
        finally:
            telling.cancel()
        print_line("Worker stopped.")


async def _tell_of_clusters(clusters: Sequence[ClusterAccess]) -> None:
    """Print for each cluster whether its API server answers. A worker runs without an answer, too:
    each of its tasks tries again."""
    if not clusters:
        return
    from temporal_plans.activities.kubernetes.cluster import connected  # of an extra
    from temporal_plans.activities.kubernetes.errors import ClusterError

    for access in clusters:
        try:
            async with connected(
                access.kubeconfig, access.context, timeout=_CLUSTER_TIMEOUT
            ) as cluster:
                print_line(f"Cluster {access.name}: Kubernetes {await cluster.version()}.")
        except ClusterError as error:
            print_error(f"cluster {access.name}: {error}; every task tries again")


async def run_agent_process(
    flags: ConnectionFlags, sending: Telemetry, settings: AgentSettings
) -> None:
    """Run an agent until Ctrl-C or SIGTERM. The settings say whether its tasks end with it."""
    from temporal_plans.activities.agent.host.main import run_agent

    async with stop_signal() as stop:
        client = await connect(flags.connection(), plugins=sending.plugins, runtime=sending.runtime)
        server = client.service_client.config.target_host
        print_line(
            f"Agent {settings.id} in pool {settings.pool} of {server}, namespace "
            f"{client.namespace}; work directory {settings.work_dir}."
        )
        await run_agent(client, settings, stop=stop)
        tasks = "its tasks were killed" if settings.kill_tasks_on_exit else "its tasks keep running"
        print_line(f"Agent {settings.id} stopped; {tasks}.")


async def run_spoke_process(
    flags: ConnectionFlags, sending: Telemetry, hub: Connection, settings: "SpokeSettings"
) -> None:
    """Run a spoke until Ctrl-C or SIGTERM, or until another one acts for its environment."""
    from temporal_plans.cli.processes.hub_options import connect_to_hub
    from temporal_plans.worker.spoke import run_spoke

    async with stop_signal() as stop:
        client = await connect(flags.connection(), plugins=sending.plugins, runtime=sending.runtime)
        at_hub = await connect_to_hub(hub, sending.plugins, sending.runtime)
        server = client.service_client.config.target_host
        print_line(
            f"Spoke of environment {settings.environment} at {hub.address}, namespace "
            f"{at_hub.namespace}; its own server is {server}, namespace {client.namespace}; work "
            f"directory {settings.work_dir}."
        )
        await run_spoke(at_hub, client, settings, stop=stop)
        print_line("Spoke stopped; its plans go on.")
