"""Documents that are applied at once take effect in the order in which they arrived."""

import asyncio
from typing import Any
from uuid import uuid4

from temporalio import activity
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

from pauses import until
from temporal_plans.messages.fleets.environments import EnvironmentApply
from temporal_plans.worker.plugin import PlansPlugin
from workflows.fleet_kit import new_environment
from workflows.plan_kit import Kit, Recorder


class Held(Interceptor):
    """Holds the first reading of a document, and counts the readings that are done."""

    def __init__(self) -> None:
        self.begun = 0
        self.done = 0
        self.free = asyncio.Event()

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        held = self

        class Reading(ActivityInboundInterceptor):
            async def execute_activity(self, input: ExecuteActivityInput) -> Any:
                if activity.info().activity_type != "read_environment":
                    return await super().execute_activity(input)
                held.begun += 1
                if held.begun == 2:  # the one of the first document is the beginning's
                    await held.free.wait()
                answer = await super().execute_activity(input)
                held.done += 1
                return answer

        return Reading(next)


async def test_the_later_document_stays(env: WorkflowEnvironment) -> None:
    address = env.client.service_client.config.target_host
    client = await Client.connect(address, plugins=[PlansPlugin()])
    held, queue = Held(), f"order-{uuid4()}"
    async with Worker(client, task_queue=queue, interceptors=[held]):
        environment = new_environment(Kit(client, queue, Recorder()))
        await environment.apply({})

        def document(channel: str) -> EnvironmentApply:
            settings = {"release_channel": channel}
            return EnvironmentApply.model_validate(
                {"environment": {"name": environment.name, "settings": settings}, "by": "ann"}
            )

        earlier = asyncio.create_task(environment.update("apply", document("earlier")))

        async def is_held() -> bool:
            return held.begun == 2

        await until(is_held)
        later = asyncio.create_task(environment.update("apply", document("later")))

        async def is_read() -> bool:
            return held.done == 2

        await until(is_read)
        held.free.set()
        await asyncio.gather(earlier, later)
        export = await environment.client.environment_document(environment.name)
        assert export.settings.release_channel == "later"
        await client.get_workflow_handle(environment.id).terminate()
