"""Workflows of ours that are started with an input that they can't use (worker.sdk.start_input)."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator, Sequence
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowQueryFailedError,
)
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker

from pauses import PATIENCE
from temporal_plans.worker.plugin import PlansPlugin

pytestmark = [
    # The SDK makes the coroutine of a run whose ``__init__`` fails, and never awaits it.
    pytest.mark.filterwarnings("ignore:coroutine .*run_workflow. was never awaited:RuntimeWarning"),
    pytest.mark.usefixtures("collected"),
]

TYPES = (
    "Content",
    "Environment",
    "Phase",
    "Plan",
    "Pool",
    "Product",
    "ScheduledRun",
    "Service",
    "Step",
)
SEALED = RawValue(Payload(metadata={"encoding": b"binary/sealed"}, data=b"?"))
BYTES = RawValue(Payload(metadata={"encoding": b"binary/plain"}, data=b"?"))
FOUND: dict[str, tuple[Sequence[object], str]] = {
    "none": ([], "nothing"),
    "null": ([None], "null"),
    "two": ([{"name": "a"}, {"name": "b"}], "2 inputs"),
    "undecodable": ([SEALED], "binary/sealed, which can't be decoded: "),
    "bytes": ([BYTES], "bytes"),
}
CASES = [
    pytest.param(of, inputs, found, id=f"{of}-{name}")
    for of in TYPES
    for name, (inputs, found) in FOUND.items()
    if of != "Pool" or name not in ("none", "null")  # a pool does without
]


@pytest.fixture(scope="module")
def collected() -> Iterator[None]:
    """Warnings of these tests' runs come in these tests."""
    yield
    gc.collect()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def ours(env: WorkflowEnvironment, collected: None) -> AsyncIterator[tuple[Client, str]]:
    """A client with the plugin, and the queue of a worker."""
    target = env.client.service_client.config.target_host
    client = await Client.connect(target, plugins=[PlansPlugin()])
    queue = f"inputs-{uuid4()}"
    async with Worker(client, task_queue=queue):
        yield client, queue


async def _failure(handle: WorkflowHandle[object, object]) -> ApplicationError:
    with pytest.raises(WorkflowFailureError) as failed:
        await asyncio.wait_for(handle.result(), PATIENCE)
    assert isinstance(failed.value.cause, ApplicationError)
    return failed.value.cause


@pytest.mark.parametrize(("of", "inputs", "found"), CASES)
async def test_the_workflow_fails_and_says_why(
    ours: tuple[Client, str], of: str, inputs: Sequence[object], found: str
) -> None:
    client, queue = ours
    handle = await client.start_workflow(of, args=inputs, id=f"{of}-{uuid4()}", task_queue=queue)
    failure = await _failure(handle)
    assert failure.type == "InvalidInput"
    assert failure.non_retryable
    assert failure.message.startswith(f"input: {of} takes one JSON object (found {found}")


async def test_messages_and_queries_do_not_keep_it_from_failing(env: WorkflowEnvironment) -> None:
    """They come with the start, for nobody had a worker."""
    plugin = PlansPlugin()
    client = await Client.connect(env.client.service_client.config.target_host, plugins=[plugin])
    queue = f"inputs-{uuid4()}"
    handle = await client.start_workflow("Plan", id=queue, task_queue=queue)
    await handle.signal("interrupt", {})
    early = asyncio.create_task(handle.query("status"))
    await asyncio.sleep(0.5)  # nothing says when the server holds the query
    async with Worker(client, task_queue=queue):
        assert (await _failure(handle)).type == "InvalidInput"
        for query in (early, handle.query("status")):
            with pytest.raises(WorkflowQueryFailedError, match="found nothing"):
                await asyncio.wait_for(query, PATIENCE)
        history = await handle.fetch_history()
    await Replayer(workflows=[], plugins=[plugin]).replay_workflow(history)


@pytest.mark.parametrize("inputs", [[], [None]])
async def test_a_pool_does_without_input(
    ours: tuple[Client, str], inputs: Sequence[object]
) -> None:
    client, queue = ours
    handle = await client.start_workflow(
        "Pool", args=inputs, id=f"pool-{uuid4()}", task_queue=queue
    )
    assert await asyncio.wait_for(handle.query("status"), PATIENCE)
    await handle.terminate()


async def test_what_a_model_refuses_is_told_by_the_model(ours: tuple[Client, str]) -> None:
    client, queue = ours
    handle = await client.start_workflow(
        "Plan", {"nam": "x"}, id=f"plan-{uuid4()}", task_queue=queue
    )
    failure = await _failure(handle)
    assert failure.message.startswith(
        'name: is missing; nam: unknown key (found "x"); did you mean name'
    )
