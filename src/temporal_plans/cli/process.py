"""Long-running processes: logging, telemetry, and an end with one line."""

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from temporal_plans.activities.agent.settings import AgentSettings
from temporal_plans.cli.core_lines import logging_runtime
from temporal_plans.cli.flags import ConnectionFlags
from temporal_plans.cli.output import say
from temporal_plans.cli.running import stop_signal
from temporal_plans.client.connection import connect
from temporal_plans.worker.telemetry import SETTING, Telemetry, telemetry


@contextmanager
def process(name: str, *, log_level: str) -> Generator[Telemetry]:
    """Log to standard error, and send telemetry if the environment asks for it.

    ``log_level`` is for our own lines; of Temporal's SDK, warnings and worse are shown, unless
    errors alone are wanted.
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


async def run_a_worker(flags: ConnectionFlags, sending: Telemetry, task_queue: str) -> None:
    """Run a worker until Ctrl-C or SIGTERM."""
    from temporal_plans.worker.main import run_worker  # an agent starts sooner without them
    from temporal_plans.worker.plugin import PlansPlugin

    async with stop_signal() as stop:
        client = await connect(
            flags.connection(),
            plugins=[PlansPlugin(), *sending.plugins],
            runtime=sending.runtime,
        )
        server = client.service_client.config.target_host
        say(f"Worker on task queue {task_queue} of {server}, namespace {client.namespace}.")
        await run_worker(client, stop=stop, task_queue=task_queue)
        say("Worker stopped.")


async def run_an_agent(flags: ConnectionFlags, sending: Telemetry, settings: AgentSettings) -> None:
    """Run an agent until Ctrl-C or SIGTERM. Its tasks go on unless the settings say otherwise."""
    from temporal_plans.activities.agent.main import run_agent

    async with stop_signal() as stop:
        client = await connect(flags.connection(), plugins=sending.plugins, runtime=sending.runtime)
        server = client.service_client.config.target_host
        say(
            f"Agent {settings.id} in pool {settings.pool} of {server}, namespace "
            f"{client.namespace}; work directory {settings.work_dir}."
        )
        await run_agent(client, settings, stop=stop)
        tasks = "its tasks were ended" if settings.kill_tasks_on_exit else "its tasks go on"
        say(f"Agent {settings.id} stopped; {tasks}.")
