"""Malformed starts and messages to the workflows of a real server: none wedges one.

``--fuzz-inputs N`` sends N of each, ``--fuzz-seed S`` chooses them; ``make fuzz`` sends thousands.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.api.common.v1 import Payload
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateStage,
)
from temporalio.common import RawValue
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from fuzz.mutations import mutated
from fuzz.seeds import Door, doors, valid
from pauses import Pauses
from temporal_plans.worker.plugin import PlansPlugin

pytestmark = [
    pytest.mark.filterwarnings("ignore:coroutine .*run_workflow. was never awaited:RuntimeWarning"),
]

BATCH = 20
SETTLED_WITHIN = 60.0
ANSWERS = (WorkflowUpdateFailedError, WorkflowQueryFailedError, RPCError, TimeoutError)
"""What a door may say to a mutation. Whether the workflow is wedged is seen afterwards."""
"""Seconds in which the workflow tasks of a batch are completed, on a busy machine."""

LONG_LIVED = {"Content", "Environment", "Plan", "Pool", "Product", "Service", "Spoke"}

NEVER_FAIL = {"Environment", "Product", "Spoke"}
"""Those that end by a deletion only."""


def payload(value: Any) -> RawValue:
    """The value as other clients may encode it: with NaN, and with keys that no model has."""
    text = json.dumps(value).encode()
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=text))


def batches(request: pytest.FixtureRequest) -> int:
    """How many batches each of the four tests sends."""
    inputs = cast(int, request.config.getoption("--fuzz-inputs"))
    return max(1, inputs // (4 * BATCH))


@dataclass
class Sender:
    """Sends mutations of valid inputs; ``sent`` is the last one to each workflow."""

    client: Client
    queue: str
    random: Random
    sent: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    counts: Counter[str] = field(default_factory=Counter[str])

    async def start(self, door: Door) -> WorkflowHandle[Any, Any]:
        """Start the workflow with a mutation of a valid input."""
        id = f"fuzz-{door.workflow}-{uuid4()}"
        return await self._start(door, id, mutated(self.random.choice(valid(door)), self.random))

    async def start_valid(self, door: Door, input: Any) -> WorkflowHandle[Any, Any]:
        """Start the workflow with that input."""
        name = f"{door.workflow.lower()}/fuzz-{uuid4()}"
        return await self._start(door, name, input)

    async def _start(self, door: Door, id: str, input: Any) -> WorkflowHandle[Any, Any]:
        self.note(id, door, input)
        return await self.client.start_workflow(
            door.workflow, args=[payload(input)], id=id, task_queue=self.queue
        )

    async def send(self, handle: WorkflowHandle[Any, Any], door: Door) -> None:
        """Send a mutation through the door. A refusal is as good as an answer."""
        input = mutated(self.random.choice(valid(door)), self.random)
        self.note(handle.id, door, input)
        with suppress(*ANSWERS):
            async with asyncio.timeout(SETTLED_WITHIN):
                match door.kind:
                    case "signal":
                        await handle.signal(door.name, args=[payload(input)])
                    case "update":
                        await handle.start_update(
                            door.name,
                            args=[payload(input)],
                            wait_for_stage=WorkflowUpdateStage.ACCEPTED,
                        )
                    case _:
                        await handle.query(door.name, args=[payload(input)])

    def note(self, id: str, door: Door, input: Any) -> None:
        """Remember what was sent, for the message of a failure."""
        self.counts[door.kind] += 1
        self.sent.setdefault(id, []).append(f"{door}: {json.dumps(input)[:500]}")

    async def settle(self, handles: Sequence[WorkflowHandle[Any, Any]]) -> None:
        """Wait until no workflow task is pending; fail for one that fails again and again."""
        end, pauses = time.monotonic() + SETTLED_WITHIN, Pauses()
        left = list(handles)
        while left:
            left = [handle for handle in left if await self._is_busy(handle)]
            assert time.monotonic() < end, f"not settled: {[self.last(one) for one in left]}"
            await pauses.pause()

    async def _is_busy(self, handle: WorkflowHandle[Any, Any]) -> bool:
        described = (await handle.describe()).raw_description
        task = described.pending_workflow_task
        assert task.attempt < 3, f"wedged: {self.last(handle)}"
        return described.HasField("pending_workflow_task")

    def last(self, handle: WorkflowHandle[Any, Any]) -> str:
        """What was sent to a workflow last, for messages."""
        return f"{handle.id} after {self.sent[handle.id][-BATCH:]}"


@pytest_asyncio.fixture(loop_scope="session")
async def sender(env: WorkflowEnvironment, request: pytest.FixtureRequest) -> AsyncIterator[Sender]:
    """A sender to a worker of its own, which ends with what it has started."""
    seed = cast(int, request.config.getoption("--fuzz-seed"))
    target = env.client.service_client.config.target_host
    client = await Client.connect(target, plugins=[PlansPlugin()])
    queue = f"fuzz-{uuid4()}"
    async with Worker(client, task_queue=queue):
        yield Sender(client, queue, Random(seed))
        for id in [run.id async for run in client.list_workflows(f"TaskQueue = '{queue}'")]:
            with suppress(RPCError):
                await client.get_workflow_handle(id).terminate()


async def test_malformed_starts(sender: Sender, request: pytest.FixtureRequest) -> None:
    starts = [door for door in doors() if door.kind == "start"]
    for _ in range(batches(request)):
        batch = [await sender.start(sender.random.choice(starts)) for _ in range(BATCH)]
        await sender.settle(batch)
        for handle in batch:
            with suppress(RPCError):  # most have failed
                await handle.terminate()
    assert sender.counts["start"] >= BATCH


@pytest.mark.parametrize("of", sorted(LONG_LIVED))
async def test_malformed_messages(sender: Sender, request: pytest.FixtureRequest, of: str) -> None:
    ways = [door for door in doors() if door.workflow == of and door.kind != "start"]
    [start] = [door for door in doors() if door.workflow == of and door.kind == "start"]
    handle = await sender.start_valid(start, VALID[of])
    for _ in range(batches(request)):
        for _ in range(BATCH):
            await sender.send(handle, sender.random.choice(ways))
        await sender.settle([handle])
        described = await handle.describe()
        if described.close_time is not None:  # it was forced, or uninstalled
            ended = described.status is WorkflowExecutionStatus.COMPLETED
            assert ended or of not in NEVER_FAIL, sender.last(handle)
            handle = await sender.start_valid(start, VALID[of])
        assert await handle.query("status") is not None
    assert sum(sender.counts.values()) > BATCH


VALID: dict[str, Any] = {
    "Content": {"packed": "eJxLK62qAgAEaQHQ"},
    "Environment": {
        "name": "fuzz",
        "history_limit": 60,
        "state": {
            "declaration": {"name": "fuzz"},
            "environment": {
                "name": "fuzz",
                "entities": [{"name": "web", "settings": {"product": "a:b", "kind": "plan"}}],
            },
            "products": {"a:b": {"revision": 1, "product": {"id": "a:b"}}},
        },
    },
    "Spoke": {"environment": "fuzz", "history_limit": 60},
    "Product": {
        "name": "a:b",
        "history_limit": 60,
        "state": {"product": {"id": "a:b", "releases": [{"version": "1.0.0"}]}, "revision": 1},
    },
    "Plan": {
        "name": "fuzz",
        "phases": [
            {
                "name": "phase",
                "steps": [{"name": "step", "work": {"kind": "approval", "message": "well?"}}],
            }
        ],
    },
    "Pool": {},
    "Service": {
        "spec": {
            "name": "fuzz",
            "pods": [
                {
                    "type": "web",
                    "count": 1,
                    "tasks": [
                        {
                            "name": "server",
                            "goal": "RUNNING",
                            "cmd": "sleep 1",
                            "resource-set": "set",
                        }
                    ],
                    "resource-sets": [{"id": "set", "cpus": 0.1, "memory": 16}],
                }
            ],
        }
    },
}
"""Inputs of workflows that live for long."""
