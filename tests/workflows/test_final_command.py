"""Workflows whose ``__init__`` fails, end, whoever queries them (worker.sdk.final_command)."""

import asyncio
import gc
from collections.abc import Iterator
from uuid import uuid4

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowQueryFailedError
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from pauses import PATIENCE
from temporal_plans.worker.plugin import PlansPlugin
from workflows.start_programs import Refusing, RefusingOutside

pytestmark = [
    # The SDK makes the coroutine of a run whose ``__init__`` fails, and never awaits it.
    pytest.mark.filterwarnings("ignore:coroutine .*run_workflow. was never awaited:RuntimeWarning"),
    pytest.mark.usefixtures("collected"),
]

WAITS = 0.5
"""Seconds after which the server holds the query: nothing says when it does."""


@pytest.fixture
def collected() -> Iterator[None]:
    """Warnings of this test's runs come in this test."""
    yield
    gc.collect()


@pytest.mark.parametrize(
    "refusing",
    [
        pytest.param(Refusing, id="sandboxed"),
        pytest.param(RefusingOutside, id="unsandboxed"),
    ],
)
async def test_a_query_of_a_workflow_that_refuses_its_start(
    env: WorkflowEnvironment, refusing: type[Refusing]
) -> None:
    plugin = PlansPlugin()
    client = await Client.connect(env.client.service_client.config.target_host, plugins=[plugin])
    queue = f"refusing-{uuid4()}"
    handle = await client.start_workflow(refusing.run, "she", id=queue, task_queue=queue)
    early = asyncio.create_task(handle.query(refusing.name))
    await asyncio.sleep(WAITS)
    async with (
        Worker(client, task_queue=queue, workflows=[refusing]),
        asyncio.timeout(PATIENCE),
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await handle.result()
        assert isinstance(failed.value.cause, ApplicationError)
        assert failed.value.cause.message == "she is refused"
        with pytest.raises(WorkflowQueryFailedError, match="she is refused"):
            await early
        with pytest.raises(WorkflowQueryFailedError, match="she is refused"):
            await handle.query(refusing.name)
        history = await handle.fetch_history()
    await Replayer(workflows=[refusing], plugins=[plugin]).replay_workflow(history)
