"""Contents in Temporal, on a real server."""

import dataclasses
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import Payload, TimeSkippingConfig
from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    ActivityFailureError,
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowInput,
    WorkflowExecutionStatus,
    WorkflowHandle,
)
from temporalio.common import RawValue
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Worker

from content_suite import ContentStoreSuite, noise
from pauses import until
from temporal_plans.activities.contents.errors import ContentDamaged, ContentMissing
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.contents.temporal_contents import TemporalContents
from temporal_plans.activities.mechanics.runs import beginning_of
from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.client.errors import Refused
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.contents import (
    HOLDERS_SIZE_LIMIT,
    PART_SIZE,
    ContentHold,
    ContentHolder,
    ContentPart,
    ContentStatus,
    content_id,
)
from temporal_plans.testing.time_skipping import DYNAMIC_CONFIG
from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.plugin import PlansPlugin
from workflows.test_codec import SEALED, Seal

TWO_PARTS = noise(PART_SIZE + 1, seed=2)


class TestTemporalContents(ContentStoreSuite):
    """Without any worker."""

    @pytest.fixture
    def store(self, client: Client) -> ContentStore:
        return TemporalContents(client, task_queue=f"contents-{uuid4()}")


# --- the parts ------------------------------------------------------------------------------------


class Starts(Interceptor):
    """Notes the workflows that a client starts, and fails before the ``fails_at``-th."""

    def __init__(self, fails_at: int = 0) -> None:
        self.ids: list[str] = []
        self._fails_at = fails_at

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Starting(next, self)

    def note(self, id: str) -> None:
        if len(self.ids) + 1 == self._fails_at:
            raise ConnectionError("killed")
        self.ids.append(id)


class _Starting(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, starts: Starts) -> None:
        super().__init__(next)
        self._starts = starts

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        self._starts.note(input.id)
        return await super().start_workflow(input)


async def connected(client: Client, **options: Any) -> Client:
    options = {"data_converter": pydantic_data_converter, **options}
    return await Client.connect(client.service_client.config.target_host, **options)


@pytest.fixture
def queue() -> str:
    return f"contents-{uuid4()}"


async def test_a_put_that_was_killed_between_parts_is_repeated(client: Client, queue: str) -> None:
    data, first, second = noise(3 * PART_SIZE, seed=3), Starts(fails_at=3), Starts()
    with pytest.raises(ConnectionError):
        await TemporalContents(await connected(client, interceptors=[first]), task_queue=queue).put(
            data
        )
    store = TemporalContents(await connected(client, interceptors=[second]), task_queue=queue)
    digest = ContentStoreSuite.digest(data)
    with pytest.raises(ContentMissing, match=r"is not in the store"):
        await store.get(digest)
    assert await store.put(data) == digest
    assert await store.get(digest) == data
    assert first.ids == [content_id(digest, 3), content_id(digest, 2)]
    assert second.ids == [content_id(digest)]


async def test_a_lost_part_is_missing_until_it_is_put_again(client: Client, queue: str) -> None:
    starts, data = Starts(), noise(PART_SIZE + 1, seed=4)
    digest = ContentStoreSuite.digest(data)
    alone = ContentPart.of(data[:PART_SIZE], parts=2)
    await client.start_workflow("Content", alone, id=content_id(digest), task_queue=queue)
    store = TemporalContents(await connected(client, interceptors=[starts]), task_queue=queue)
    with pytest.raises(ContentMissing, match=r"lacks its part 2 .*put it again"):
        await store.get(digest)
    await store.put(data)
    assert starts.ids == [content_id(digest, 2)]
    assert await store.get(digest) == data


@pytest.mark.parametrize(
    ("input", "why"),
    [
        pytest.param(ContentPart.of(b"other"), r"have the digest", id="other-bytes"),
        pytest.param(ContentPart(packed="?"), r"part 1 can't be expanded", id="no-base64"),
        pytest.param({"unknown": 1}, r"part 1 can't be read", id="another-model"),
        pytest.param(None, r"part 1 ", id="null"),
    ],
)
async def test_other_bytes_under_the_id_of_a_content(
    client: Client, queue: str, input: Any, why: str
) -> None:
    data = noise(20, seed=uuid4().int)
    digest = ContentStoreSuite.digest(data)
    id = content_id(digest)
    await client.start_workflow("Content", input, id=id, task_queue=queue)
    store = TemporalContents(client, task_queue=queue)
    with pytest.raises(ContentDamaged, match=rf"{why}.*terminate the workflow {id}, then put"):
        await store.get(digest)
    await client.get_workflow_handle(id).terminate()
    await store.put(data)
    assert await store.get(digest) == data


async def test_an_ended_content_is_read_from_its_history_and_started_again_by_a_hold(
    client: Client, queue: str
) -> None:
    store = TemporalContents(client, task_queue=queue)
    digest = await store.put(TWO_PARTS)
    for id in (content_id(digest, 2), content_id(digest)):
        await client.get_workflow_handle(id).terminate()
    assert await store.get(digest) == TWO_PARTS
    await store.hold(digest, "service/web")
    for id in (content_id(digest, 2), content_id(digest)):
        described = await client.get_workflow_handle(id).describe()
        assert described.status is WorkflowExecutionStatus.RUNNING
    with pytest.raises(ContentMissing):
        await store.hold("0" * 64, "service/web")


@pytest.mark.parametrize("data", [b"x", noise(PART_SIZE + 1, seed=5)], ids=["small", "parts"])
async def test_a_codec_of_the_user(client: Client, queue: str, data: bytes) -> None:
    converter = dataclasses.replace(pydantic_data_converter, payload_codec=Seal())
    sealing = await connected(client, data_converter=converter)
    store = TemporalContents(sealing, task_queue=queue)
    digest = await store.put(data + b"sealed")
    assert await store.get(digest) == data + b"sealed"
    began = await beginning_of(client, content_id(digest))
    assert began is not None
    assert began.input.payloads[0].metadata["encoding"] == SEALED
    with pytest.raises(ContentDamaged, match=r"part 1 can't be read"):
        await TemporalContents(client, task_queue=queue).get(digest)


async def test_the_client(client: Client) -> None:
    plans = PlansClient(client)
    digest = await plans.put_content(b"a package")
    assert await plans.get_content(digest) == b"a package"
    with pytest.raises(Refused, match=r"is not in the store"):
        await plans.get_content("0" * 64)
    with pytest.raises(Refused, match=r"more than"):
        await plans.put_content(bytes(11_000_000))


# --- holders --------------------------------------------------------------------------------------


@pytest_asyncio.fixture(loop_scope="session")
async def served(client: Client, queue: str) -> AsyncIterator[Client]:
    """A client of a worker on the queue."""
    made = await connected(client, plugins=[PlansPlugin()])
    async with Worker(made, task_queue=queue):
        yield made


async def status(client: Client, digest: str) -> ContentStatus:
    answer: ContentStatus = await client.get_workflow_handle(content_id(digest)).query(
        "status", result_type=ContentStatus
    )
    return answer


async def test_holders_are_known_once(served: Client, queue: str) -> None:
    store = TemporalContents(served, task_queue=queue)
    digest = await store.put(noise(10, seed=6))
    for holder in ("service/a", "service/b", "service/a"):
        await store.hold(digest, holder)
    assert (await status(served, digest)).holders == ("service/a", "service/b")
    for _ in range(2):
        await store.release(digest, "service/a")
    assert (await status(served, digest)).holders == ("service/b",)


async def test_a_put_keeps_it_for_another_day(served: Client, queue: str) -> None:
    store, data = TemporalContents(served, task_queue=queue), noise(10, seed=14)
    digest = await store.put(data)
    first = (await status(served, digest)).kept_until
    await store.put(data)
    assert first < (await status(served, digest)).kept_until


async def test_a_holder_is_not_taken_for_closed_on_its_first_day(
    served: Client, queue: str
) -> None:
    """The first part of a content holds the others, and starts after them."""
    data = noise(10, seed=15)
    id = content_id(ContentStoreSuite.digest(data))
    past = datetime(2026, 1, 1, tzinfo=UTC)
    part = ContentPart.of(data, holder="never/started").but(next_check=past)
    await served.start_workflow("Content", part, id=id, task_queue=queue)
    await until(lambda: checks(served, id), lambda count: count == 1)
    found = await status(served, ContentStoreSuite.digest(data))
    assert found.holders == ("never/started",)


async def test_the_activities(served: Client, queue: str) -> None:
    data = noise(10, seed=13)
    digest = await TemporalContents(served, task_queue=queue).put(data)

    async def run(name: str, digest: str, holder: str) -> None:
        await served.execute_activity(
            name,
            ContentHold(digest=digest, holder=holder),
            id=f"{name}-{uuid4()}",
            task_queue=queue,
            start_to_close_timeout=timedelta(minutes=1),
        )

    await run("hold_content", digest, "service/a")
    await run("hold_content", digest, "service/b")
    await run("release_content", digest, "service/a")
    assert (await status(served, digest)).holders == ("service/b",)
    with pytest.raises(ActivityFailureError) as failed:
        await run("hold_content", "0" * 64, "service/a")
    refusal = refusal_of(failed.value.cause)
    assert refusal.code == Code.NOT_FOUND
    assert "put it again" in str(refusal)


async def test_malformed_signals(served: Client, queue: str) -> None:
    store = TemporalContents(served, task_queue=queue)
    data = noise(10, seed=7)
    digest = await store.put(data)
    handle = served.get_workflow_handle(content_id(digest))
    kept_until = (await status(served, digest)).kept_until
    bad: list[Any] = [{"holdr": "x"}, {"holder": 1}, {"holder": "x" * 2000}, [], None, "x", 1]
    for signal in ("hold", "release", "nonsense"):
        for value in bad:
            text = json.dumps(value).encode()
            payload = Payload(metadata={"encoding": b"json/plain"}, data=text)
            await handle.signal(signal, args=[RawValue(payload)])
        await handle.signal(signal)
        await handle.signal(signal, args=[1, 2])
    await store.hold(digest, "service/a")
    found = await status(served, digest)
    assert (found.holders, found.kept_until) == (("service/a",), kept_until)
    assert await store.get(digest) == data
    described = (await handle.describe()).raw_description
    assert described.pending_workflow_task.attempt < 2


async def test_a_content_with_too_many_holders_does_not_end(served: Client, queue: str) -> None:
    data = noise(10, seed=16)
    id = content_id(ContentStoreSuite.digest(data))
    given = ContentPart.of(data).but(crowded=True, kept_until=datetime(2026, 1, 1, tzinfo=UTC))
    handle = await served.start_workflow("Content", given, id=id, task_queue=queue)
    assert (await status(served, ContentStoreSuite.digest(data))).holders == ()
    assert (await handle.describe()).status is WorkflowExecutionStatus.RUNNING


async def carried(client: Client, workflow_id: str) -> ContentPart:
    """Return the input of a content's newest run."""
    began = await beginning_of(client, workflow_id)
    assert began is not None
    [part] = await client.data_converter.decode(began.input.payloads, [ContentPart])
    assert isinstance(part, ContentPart)
    return part


async def test_more_holders_than_fit_keep_it_open(served: Client, queue: str) -> None:
    """And it continues as new with the largest part, and all that do fit."""
    data = noise(PART_SIZE, seed=8)
    digest = ContentStoreSuite.digest(data)
    long = [f"service/{i:04}" + "é" * 980 for i in range(HOLDERS_SIZE_LIMIT // 5900)]
    given = ContentPart.of(data).but(holders=tuple(long), history_limit=20)
    id = content_id(digest)
    handle = await served.start_workflow("Content", given, id=id, task_queue=queue)
    first = (await handle.describe()).run_id
    newest = served.get_workflow_handle(id)
    kept_until = (await status(served, digest)).kept_until
    for i in range(8):
        await newest.signal("hold", ContentHolder(holder=f"service/x{i}" + "é" * 980))
        await status(served, digest)
    assert (await newest.describe()).run_id != first
    found = await status(served, digest)
    assert found.crowded
    assert found.kept_until == kept_until
    assert (await carried(served, id)).next_check == kept_until + timedelta(days=6)
    assert set(long) <= set(found.holders)
    assert await TemporalContents(served, task_queue=queue).get(digest) == data
    for holder in found.holders:
        await newest.signal("release", ContentHolder(holder=holder))
    assert (await status(served, digest)).crowded


# --- time -----------------------------------------------------------------------------------------


class Skipping(Interceptor):
    """Starts the workflows of ``wanted`` ids on a clock that skips the time without work."""

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self._wanted = wanted

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:
        return _Skipping(next, self._wanted)


class _Skipping(OutboundInterceptor):
    def __init__(self, next: OutboundInterceptor, wanted: Callable[[str], bool]) -> None:
        super().__init__(next)
        self._wanted = wanted

    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:
        if self._wanted(input.id):
            input.time_skipping_config = TimeSkippingConfig(
                enabled=True, max_session_skip_count=1000
            )
        return await super().start_workflow(input)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def skipping() -> AsyncIterator[str]:
    """The address of a server that can skip time."""
    async with DevServer(dynamic_config=DYNAMIC_CONFIG) as server:
        yield server.address


@asynccontextmanager
async def skipping_client(
    address: str, queue: str, wanted: Callable[[str], bool] = lambda _: True
) -> AsyncGenerator[Client]:
    client = await Client.connect(address, plugins=[PlansPlugin()], interceptors=[Skipping(wanted)])
    async with Worker(client, task_queue=queue):
        yield client


async def lifetime(client: Client, workflow_id: str) -> timedelta:
    """Return how long a workflow was open, by its own clock, once it is closed."""
    handle = client.get_workflow_handle(workflow_id)
    await handle.result()
    described = await handle.describe()
    assert described.close_time is not None
    return described.close_time - described.start_time


async def open_after(client: Client, workflow_id: str, kind: "EventType.ValueType") -> timedelta:
    """Return how long a workflow was open after the last event of a kind, once it is closed."""
    handle = client.get_workflow_handle(workflow_id)
    await handle.result()
    events = (await handle.fetch_history()).events
    last = [event for event in events if event.event_type == kind][-1]
    return events[-1].event_time.ToDatetime() - last.event_time.ToDatetime()


A_DAY = timedelta(days=1)
LITTLE = timedelta(hours=1)


async def test_without_a_holder_it_ends_after_a_day(skipping: str, queue: str) -> None:
    async with skipping_client(skipping, queue) as client:
        store = TemporalContents(client, task_queue=queue)
        data = noise(100, seed=9)
        digest = await store.put(data)
        open_for = await lifetime(client, content_id(digest))
        assert A_DAY <= open_for < A_DAY + LITTLE
        assert await store.get(digest) == data
        assert await store.put(data) == digest
        assert await store.get(digest) == data


async def checks(client: Client, workflow_id: str) -> int:
    """Return how often the holders of a content were checked in its newest run."""
    history = await client.get_workflow_handle(workflow_id).fetch_history()
    done = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
    return sum(event.event_type == done for event in history.events)


async def held(client: Client, queue: str, data: bytes) -> tuple[str, str]:
    """Return a content on a clock that skips, after its third check, and its holder, another
    content on the clock of the machine."""
    store = TemporalContents(client, task_queue=queue)
    holder = content_id(await store.put(data + b" holder"))
    digest = ContentStoreSuite.digest(data)
    part = ContentPart.of(data, holder=holder)
    await client.start_workflow("Content", part, id=content_id(digest), task_queue=queue)
    await until(lambda: checks(client, content_id(digest)), lambda count: count >= 3)
    return digest, holder


async def test_a_held_one_is_open_until_a_day_after_its_release(skipping: str, queue: str) -> None:
    data = noise(100, seed=10)
    wanted = content_id(ContentStoreSuite.digest(data))
    async with skipping_client(skipping, queue, lambda id: id == wanted) as client:
        digest, holder = await held(client, queue, data)
        assert (await status(client, digest)).holders == (holder,)
        await TemporalContents(client, task_queue=queue).release(digest, holder)
        released = EventType.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED
        assert A_DAY <= await open_after(client, wanted, released) < A_DAY + LITTLE


async def test_a_closed_holder_is_released(skipping: str, queue: str) -> None:
    data = noise(100, seed=11)
    wanted = content_id(ContentStoreSuite.digest(data))
    async with skipping_client(skipping, queue, lambda id: id == wanted) as client:
        _, holder = await held(client, queue, data)
        await client.get_workflow_handle(holder).terminate()
        checked = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
        assert A_DAY <= await open_after(client, wanted, checked) < A_DAY + LITTLE


async def test_parts_end_after_their_first_part(skipping: str, queue: str) -> None:
    async with skipping_client(skipping, queue, lambda id: id.startswith("content/")) as client:
        digest = await TemporalContents(client, task_queue=queue).put(noise(PART_SIZE + 1, seed=12))
        assert await lifetime(client, content_id(digest)) < timedelta(days=2)
        checked = EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED
        assert await lifetime(client, content_id(digest, 2)) >= timedelta(days=8)
        # How often it looks depends on the first one's clock, which skips by itself.
        assert A_DAY <= await open_after(client, content_id(digest, 2), checked) < A_DAY + LITTLE
