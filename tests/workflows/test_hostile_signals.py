"""Well-formed messages by the thousand, from somebody who may signal: no workflow is blocked."""

import time
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random
from typing import Any
from uuid import uuid4

import pytest_asyncio
from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from pauses import PATIENCE, Pauses
from temporal_plans.worker.plugin import PlansPlugin
from workflows.test_fuzzed_doors import VALID, Sender

MANY = 2200
"""More than the 2,000 activities or signals that the server takes of one workflow at a time."""


@pytest_asyncio.fixture(loop_scope="session")
async def sender(env: WorkflowEnvironment) -> AsyncIterator[Sender]:
    target = env.client.service_client.config.target_host
    client = await Client.connect(target, plugins=[PlansPlugin()])
    made = Sender(client, f"hostile-{uuid4()}", Random(0))
    async with Worker(client, task_queue=made.queue):
        yield made
        for id in made.sent:
            with suppress(RPCError):
                await client.get_workflow_handle(id).terminate()


async def start(sender: Sender, kind: str, input: Any) -> WorkflowHandle[Any, Any]:
    id = f"{kind.lower()}/hostile-{uuid4()}"
    sender.sent[id] = []
    return await sender.client.start_workflow(kind, input, id=id, task_queue=sender.queue)


async def test_tasks_that_a_service_never_launched(sender: Sender) -> None:
    """Each would be killed, by an agent that does not exist."""
    service = await start(sender, "Service", VALID["Service"])
    status = {"state": "RUNNING", "sequence": 1, "at": "2026-01-01T00:00:00Z"}
    status |= {"name": "web-0-server", "agent": "none", "queue": "agent/none"}
    forged = [status | {"task_id": f"x__web-0-server__{i}"} for i in range(MANY)]
    await service.signal("task_statuses", {"statuses": forged})
    await sender.settle([service])
    assert (await service.query("status"))["name"] == "fuzz"
    assert len((await service.describe()).raw_description.pending_activities) <= 510


async def test_leases_of_phases_that_never_were(sender: Sender) -> None:
    """Each would be granted, and told to a workflow that does not exist."""
    service = await start(sender, "Service", VALID["Service"])
    want = {"plan": "ghost", "step": 0, "pod": "web", "tasks": ["server"]}
    wants = [want | {"phase": f"ghost/{i}", "index": i + 10} for i in range(MANY)]
    await service.signal("leases", {"phase": "ghost/0", "wants": wants})
    await sender.settle([service])
    assert (await service.query("status"))["name"] == "fuzz"
    held = (await service.query("status"))["leases"]
    assert [lease["phase"] for lease in held if lease["plan"] == "ghost"] == ["ghost/0"]


async def test_an_agent_that_says_too_much_of_its_start(sender: Sender) -> None:
    """The pool carries it to its next run, which could not read it."""
    pool = await start(sender, "Pool", {"history_limit": 60})
    info = {"id": "a1", "queue": "agent/none", "hostname": "h", "boot": "b"}
    await pool.execute_update("register", info | {"resources": {"cpus": 1, "memory": 1}})
    await pool.signal("heard", {"agent": "a1", "boot": "x" * 5000})
    first = (await pool.describe()).run_id
    for _ in range(60):
        await pool.signal("withdraw", {"key": "none"})
    await eventually_next_run(sender, pool, first, "withdraw", {"key": "none"})
    assert [agent["info"]["boot"] for agent in (await pool.query("status"))["agents"]] == ["b"]


async def test_losses_of_agents_with_long_names(sender: Sender) -> None:
    """A service remembers the last hundred."""
    service = await start(sender, "Service", VALID["Service"] | {"history_limit": 60})
    noise = Random(1)
    for _ in range(4):
        agent = "".join(chr(noise.randrange(33, 1000)) for _ in range(600_000))
        lost = {"agent": agent, "pool": "default", "at": "2026-01-01T00:00:00Z"}
        await service.signal("agent_lost", lost)
    first = (await service.describe()).run_id
    for _ in range(60):
        await service.signal("offered")
    await eventually_next_run(sender, service, first, "offered")
    assert (await service.query("status"))["name"] == "fuzz"


async def eventually_next_run(
    sender: Sender, handle: WorkflowHandle[Any, Any], first: str, signal: str, *args: Any
) -> None:
    """Send a signal without effect until the workflow has continued as new."""
    end, pauses = time.monotonic() + PATIENCE, Pauses()
    newest = sender.client.get_workflow_handle(handle.id)
    while (await newest.describe()).run_id == first:
        assert time.monotonic() < end, "no next run"
        await sender.settle([newest])
        await newest.signal(signal, args=args)
        await pauses.pause()
    await sender.settle([newest])


async def test_owners_that_do_not_exist(sender: Sender) -> None:
    """Each is told that its tasks are gone."""
    service = await start(sender, "Service", VALID["Service"])
    for i in range(300):
        await service.signal("subscribe", {"owner": f"ghost/{i}", "task_ids": ["one"]})
    await sender.settle([service])
    assert (await service.query("status"))["name"] == "fuzz"
