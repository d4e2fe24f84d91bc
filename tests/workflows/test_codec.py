"""Plans whose payloads go through a codec of the user's own that wants to know for whom each is."""

import dataclasses
from collections.abc import Sequence
from datetime import timedelta
from uuid import uuid4

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Worker

from temporal_plans.domain.plans.status import Status
from temporal_plans.worker.plugin import PlansPlugin
from temporal_plans.worker.sdk.runner import PatchedSandbox
from workflows.plan_kit import Kit, Recorder, steps

SEALED = b"sealed"


class Seal(PayloadCodec, WithSerializationContext):
    """Writes on each payload which workflow it is for, and opens none that is for another."""

    def __init__(self, workflow_id: str = "") -> None:
        self._mark = workflow_id.encode() + b"|"

    def with_context(self, context: SerializationContext) -> "Seal":
        if isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            return Seal(context.workflow_id or "")
        return self

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": SEALED}, data=self._mark + one.SerializeToString())
            for one in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [self._open(one) for one in payloads]

    def _open(self, payload: Payload) -> Payload:
        if payload.metadata["encoding"] != SEALED:
            return payload
        assert payload.data.startswith(self._mark), f"not for {self._mark!r}: {payload.data!r}"
        return Payload.FromString(payload.data.removeprefix(self._mark))


CONVERTERS = [
    pytest.param(pydantic_data_converter, False, id="no-codec"),
    pytest.param(
        dataclasses.replace(pydantic_data_converter, payload_codec=Seal()), True, id="a-codec"
    ),
]


@pytest.mark.parametrize(("converter", "contexts"), CONVERTERS)
async def test_a_plan_runs(
    env: WorkflowEnvironment, converter: DataConverter, contexts: bool
) -> None:
    plugin, recorder, queue = PlansPlugin(), Recorder(), f"plans-{uuid4()}"
    client = await Client.connect(
        env.client.service_client.config.target_host, plugins=[plugin], data_converter=converter
    )
    config = plugin.configure_worker({"client": client, "task_queue": queue})
    runner = config.get("workflow_runner")
    assert isinstance(runner, PatchedSandbox)
    assert runner.patching.reads_contexts is contexts
    async with Worker(
        client,
        task_queue=queue,
        activities=[recorder.work],
        graceful_shutdown_timeout=timedelta(seconds=1),
    ):
        run = await Kit(client, queue, recorder).start({"phases": {"p": {"steps": steps("a")}}})
        assert (await run.result()).status is Status.COMPLETE
        assert (await run.view()).status is Status.COMPLETE
    assert recorder.done == ["a"]
    history = await run.handle.fetch_history()
    (given,) = history.events[0].workflow_execution_started_event_attributes.input.payloads
    sealed = given.metadata["encoding"] == SEALED
    assert sealed is (converter.payload_codec is not None)
