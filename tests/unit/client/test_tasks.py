"""Tasks and their logs, over workflows that answer from memory."""

import pytest

from builders.pools import agent_view
from builders.tasks import record
from temporal_plans.client.errors import (
    AgentNotFound,
    AgentUnreachable,
    Ambiguous,
    TaskNotFound,
    WorkerUnreachable,
)
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.task_logs import TaskAt
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import Tasks
from temporal_plans.messages.tasks import LogChunk, ReadLogInput
from unit.client.services import client_of, service
from unit.fake_gateway import FakeGateway, FakeWorkflow

# --- tasks and their logs -----------------------------------------------------------------------


def launched(task_id: str) -> TaskRecord:
    return record("hello", 0, "server", None, task_id=task_id, agent="a1", queue="queue-a1")


def with_tasks(*records: TaskRecord) -> FakeWorkflow:
    return service("deploy", tasks=Tasks(tasks=records))


@pytest.mark.parametrize("text", ["hello-0-server", "hello__hello-0-server__1"])
async def test_a_task_by_name_or_id(text: str) -> None:
    tasks = with_tasks(launched("hello__hello-0-server__1"))
    client, _ = client_of(service__hello=tasks)
    found = TaskAt("hello__hello-0-server__1", "a1", "queue-a1")
    assert await client.find_task(text) == found


async def test_an_earlier_launch_by_its_id() -> None:
    newest = launched("hello__hello-0-server__2").but(agent="a2", queue="queue-a2")
    before = launched("hello__hello-0-server__1")
    client, _ = client_of(service__hello=with_tasks(newest.after(before)))
    found = TaskAt("hello__hello-0-server__1", "a1", "queue-a1")
    assert await client.find_task("hello__hello-0-server__1") == found


async def test_an_unknown_task_names_close_ones() -> None:
    client, _ = client_of(service__hello=with_tasks(launched("x")))
    with pytest.raises(TaskNotFound, match="did you mean hello-0-server"):
        await client.find_task("helo-0-server")


async def test_a_name_of_two_services_is_ambiguous() -> None:
    client, _ = client_of(
        service__a=with_tasks(launched("a__1")),
        service__b=with_tasks(launched("b__1")),
    )
    with pytest.raises(Ambiguous, match="a__1, b__1"):
        await client.find_task("hello-0-server")


def with_agents(*ids: str, **states: AgentState) -> FakeWorkflow:
    """A pool of these agents, alive but for what ``states`` says."""
    named: dict[str, AgentState] = dict.fromkeys(ids, AgentState.ALIVE) | states
    views = tuple(agent_view(one, state) for one, state in named.items())
    return FakeWorkflow("Pool", {"status": PoolStatus(name="default", agents=views)})


async def test_a_task_on_an_agent_is_on_the_queue_that_its_pool_names() -> None:
    client, _ = client_of(
        pool__a=with_agents("a1", "a2"), pool__b=with_agents(a1=AgentState.LOST, a3=AgentState.LOST)
    )
    assert await client.find_task("t", agent="a1") == TaskAt("t", "a1", "queue-a1")
    assert await client.find_task("t", agent="a3") == TaskAt("t", "a3", "queue-a3")


async def test_a_pool_that_does_not_answer_hides_no_other() -> None:
    stuck = FakeWorkflow("Pool", {"status": WorkerUnreachable("pool/a")})
    client, _ = client_of(pool__a=stuck, pool__b=with_agents("b1"))
    assert await client.find_task("t", agent="b1") == TaskAt("t", "b1", "queue-b1")
    answers = await client.show_pools()
    assert isinstance(answers["a"], WorkerUnreachable)
    assert isinstance(answers["b"], PoolStatus)


@pytest.mark.parametrize(
    ("pools", "text"),
    [
        ({"pool__a": with_agents("a1"), "pool__b": with_agents("x2")}, "use one of: a1, x2$"),
        ({"pool__a": with_agents("rack-1", "rack-2")}, "did you mean rack-2 or rack-1"),
        ({}, "there are no agents; start one with `temporal plan agent`"),
    ],
)
async def test_an_unknown_agent_is_refused_with_those_that_there_are(
    pools: dict[str, FakeWorkflow], text: str
) -> None:
    client, _ = client_of(**pools)
    with pytest.raises(AgentNotFound, match=rf"^agent 'rack' is in no pool; {text}"):
        await client.find_task("t", agent="rack")


async def test_an_older_launch_is_looked_for_on_the_agents_that_are_alive() -> None:
    client, gateway = client_of(pool__a=with_agents("a1", "a2", a3=AgentState.UNREACHABLE))
    gateway.queues["queue-a2"] = [LogChunk()]
    gateway.queues["queue-a3"] = [LogChunk()]
    assert await client.find_task("svc__t__1") == TaskAt("svc__t__1", "a2", "queue-a2")
    assert [call.to for call in gateway.told] == ["queue-a2"]


async def read(client: PlansClient, gateway: FakeGateway, **how: object) -> str:
    task = TaskAt("t", "a1", "queue-a1")
    return "".join([piece async for piece in client.read_log(task, **how)])  # type: ignore[arg-type]


async def test_a_log_is_read_to_its_present_end() -> None:
    client, gateway = client_of()
    gateway.queues["queue-a1"] = [
        LogChunk(text="one\n", next_offset=4),
        LogChunk(text="two\n", next_offset=8),
        LogChunk(next_offset=8),
    ]
    assert await read(client, gateway) == "one\ntwo\n"
    asked = [call.argument for call in gateway.told]
    assert [ask.offset for ask in asked if isinstance(ask, ReadLogInput)] == [0, 4, 8]


async def test_follow_waits_for_more_until_the_task_has_ended() -> None:
    client, gateway = client_of()
    gateway.queues["queue-a1"] = [
        LogChunk(text="one\n", next_offset=4),
        LogChunk(next_offset=4),
        LogChunk(text="two\n", next_offset=8, ended=True),
    ]
    assert await read(client, gateway, follow=True) == "one\ntwo\n"
    asked = [call.argument for call in gateway.told]
    assert all(ask.wait for ask in asked if isinstance(ask, ReadLogInput))


async def test_tail_looks_back_until_there_are_enough_lines() -> None:
    client, gateway = client_of()
    gateway.queues["queue-a1"] = [
        LogChunk(text="x" * 300 + "\nlast\n", next_offset=5000),
        LogChunk(next_offset=5000),
        LogChunk(text="first\n" + "x" * 300 + "\nlast\n", next_offset=5000),
        LogChunk(next_offset=5000),
        LogChunk(next_offset=5000),
    ]
    assert await read(client, gateway, tail=2) == "x" * 300 + "\nlast\n"


async def test_an_agent_that_does_not_answer() -> None:
    client, gateway = client_of()
    with pytest.raises(AgentUnreachable, match="agent 'a1' did not answer"):
        await read(client, gateway)
