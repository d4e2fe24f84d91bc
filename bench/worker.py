"""The worker process: ``python -m bench.worker HOST:PORT``.

One worker for the bare workflows and one for plans, equal except for the plugin. The process prints
``ready`` and exits when standard input closes, so that it never outlives the benchmark.
"""

import asyncio
import sys

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

from bench.bare import (
    TASK_QUEUE,
    BareEnvironment,
    BarePhase,
    BarePlan,
    BareStep,
    BareTarget,
)
from bench.noop import noop
from temporal_plans.client.temporal.connection import Connection, connect
from temporal_plans.messages.addresses import PLANS_QUEUE
from temporal_plans.worker.main import CACHE_SIZE
from temporal_plans.worker.plugin import PlansPlugin


class Targets:
    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="start_target")
    async def start_target(self, id: str) -> None:
        await self._client.start_workflow(BareTarget.run, id=id, task_queue=TASK_QUEUE)


async def main(address: str) -> None:
    connection = Connection(address=address)
    client = await connect(connection)
    bare = Worker(
        client,
        task_queue=TASK_QUEUE,
        workflows=[BarePlan, BarePhase, BareStep, BareEnvironment, BareTarget],
        activities=[noop, Targets(client).start_target],
        max_cached_workflows=CACHE_SIZE,
        # As the plugin sets the sandbox up: our own modules are loaded once.
        workflow_runner=SandboxedWorkflowRunner(
            restrictions=SandboxRestrictions.default.with_passthrough_modules("bench")
        ),
    )
    plans = Worker(
        await connect(connection, plugins=[PlansPlugin()]),
        task_queue=PLANS_QUEUE,
        activities=[noop],
        max_cached_workflows=CACHE_SIZE,
    )
    async with bare, plans:
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
