"""The record of a spoke on its own server, asked as its process asks it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from temporalio.bridge import worker as bridge
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.contrib.pydantic import pydantic_data_converter

from pauses import PATIENCE, until
from temporal_plans.activities.fleets.spoke.identity import Spoke
from temporal_plans.activities.fleets.spoke.registration import (
    SpokeRegistration,
    identity_of_record,
)
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.domain.fleets.plans import EndStatus, EntityVersion, Intent, PlanKind
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.spokes import SpokeInfo
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environment_views import EnvironmentStatus
from temporal_plans.messages.fleets.environments import EnvironmentApply, EnvironmentInput
from temporal_plans.messages.fleets.names import environment_id
from temporal_plans.messages.fleets.plans import ChangeOrder
from temporal_plans.messages.fleets.products import RecallRelease
from temporal_plans.messages.spokes import (
    RegisterSpoke,
    SpokeBind,
    SpokeEnd,
    SpokeIdentity,
    SpokeInput,
    SpokeOrder,
    SpokeStatus,
    Taken,
    spoke_id,
)
from temporal_plans.worker.spoke import SpokeNotBegun, SpokeSettings, run_spoke
from workflows.fleet_kit import Environment, Product, entities, new_environment, new_product
from workflows.plan_kit import Kit

THEN = datetime(2026, 1, 1, tzinfo=UTC)


class Record:
    """The record of a spoke under test."""

    def __init__(self, environment: str, handle: WorkflowHandle[object, object]) -> None:
        self.environment = environment
        self._handle = handle
        self.id = ""

    async def bind(self, starter: str) -> None:
        identity: SpokeIdentity = await self._handle.query("identity", result_type=SpokeIdentity)
        self.id = identity.record
        await self._handle.execute_update("bind", SpokeBind(starter=starter))

    async def take(self, number: int, starter: str = "run", record: str = "") -> Taken:
        order = ChangeOrder(
            environment=self.environment,
            entity="web",
            entity_kind="unknown",
            product="shop:web",
            number=number,
            kind=PlanKind.INSTALL,
            intent=Intent.INSTALL,
            before=EntityVersion(),
            to=EntityVersion(version="1.0.0"),
            owner=environment_id(self.environment),
            starter=starter,
            at=THEN,
            contents={"1.0.0": ""},
        )
        request = SpokeOrder(lineage="l", record=record or self.id, order=order)
        answer: Taken = await self._handle.execute_update("take", request, result_type=Taken)
        return answer

    async def end(self, number: int, starter: str = "run", **more: Any) -> Taken:
        request = SpokeEnd(
            lineage="l",
            record=self.id,
            starter=starter,
            entity="web",
            number=number,
            at=THEN,
            **more,
        )
        answer: Taken = await self._handle.execute_update("end", request, result_type=Taken)
        return answer

    async def ends(self) -> dict[int, EndStatus | None]:
        status: SpokeStatus = await self._handle.query("status", result_type=SpokeStatus)
        return {one.number: one.end.status if one.end else None for one in status.plans}


async def new_record(plans: Kit) -> Record:
    environment = f"e{uuid4().hex[:8]}"
    handle = await plans.client.start_workflow(
        "Spoke",
        SpokeInput(environment=environment),
        id=spoke_id(environment),
        task_queue=plans.queue,
    )
    return Record(environment, handle)


async def test_a_number_is_taken_once(plans: Kit) -> None:
    record = await new_record(plans)
    await record.bind("run")
    assert (await record.take(2)).taken
    assert (await record.take(2)).taken  # a retry
    late = await record.take(1)
    assert (late.taken, late.highest) == (False, 2)
    assert "a later one" in late.why

    async def ended() -> bool:  # it can't be planned, which the hub hears of
        return await record.ends() == {2: EndStatus.FAILED}

    await until(ended)
    assert (await record.take(2)).taken
    assert await record.ends() == {2: EndStatus.FAILED}


async def test_a_plan_that_is_to_end_before_it_arrives_is_never_started(plans: Kit) -> None:
    record = await new_record(plans)
    await record.bind("run")
    assert (await record.end(1)).taken
    assert await record.ends() == {1: EndStatus.CANCELLED}
    assert (await record.take(1)).taken  # it is known, and stays as it is
    assert await record.ends() == {1: EndStatus.CANCELLED}


async def test_a_withdrawn_number_is_never_started_and_one_that_was_taken_goes_on(
    plans: Kit,
) -> None:
    record = await new_record(plans)
    await record.bind("run")
    assert (await record.take(1)).taken
    assert (await record.end(1, untaken=True, why="recalled")).taken

    async def went_on() -> bool:  # it can't be planned, and was not asked to end
        return await record.ends() == {1: EndStatus.FAILED}

    await until(went_on)
    assert (await record.end(2, untaken=True, why="recalled")).taken
    assert (await record.take(2)).taken
    assert await record.ends() == {1: EndStatus.FAILED, 2: EndStatus.CANCELLED}


@asynccontextmanager
async def there(plans: Kit, environment: Environment, folder: Path) -> AsyncGenerator[None]:
    """The spoke of an environment, on the same server."""
    bare = await Client.connect(
        plans.client.service_client.config.target_host, data_converter=pydantic_data_converter
    )
    settings = SpokeSettings(environment.name, work_dir=folder, task_queue=plans.queue)
    stop = asyncio.Event()
    running = asyncio.create_task(run_spoke(bare, bare, settings, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await running


async def left(plans: Kit, folder: Path) -> tuple[Product, Environment]:
    """An environment at 1.0.0 whose spoke has gone away."""
    product, environment = new_product(plans), new_environment(plans)
    await product.apply()
    document = entities(product) | {"settings": {"release_channel": "stable", "spoke": True}}
    await environment.apply(document)
    await product.publish("1.0.0")
    async with there(plans, environment, folder):
        await environment.entity().until_at("1.0.0")

    async def away() -> bool:
        spoke = (await environment.status()).spoke
        return spoke is not None and spoke.away

    await until(away)
    return product, environment


async def test_what_was_recalled_while_the_spoke_was_away_is_not_installed_when_it_is_back(
    plans: Kit, tmp_path: Path
) -> None:
    product, environment = await left(plans, tmp_path)
    web = environment.entity()
    await product.publish("1.1.0")
    bad = await web.until_plan("ISSUED")
    decided = (await web.explain()).plan
    assert decided is not None
    assert (decided.to, decided.status) == ("1.1.0", "ISSUED")
    recall = Recall(id="bad", start="1.1.0", single=True)
    await product.update("recall", RecallRelease(recall=recall, by="eve", reason="it leaks"))
    await product.publish("1.0.5")
    async with there(plans, environment, tmp_path):
        await web.until_at("1.0.5")
    ended = await web.until_plan("CANCELLED", bad.number)
    assert "withdrawn" in ended.errors[0]
    assert (await environment.status()).suppressions == ()
    assert not [one for one in plans.recorder.begun if one.startswith(f"{product.name} 1.1.0")]


async def test_what_is_still_wanted_goes_on_when_the_spoke_is_back(
    plans: Kit, tmp_path: Path
) -> None:
    product, environment = await left(plans, tmp_path)
    web = environment.entity()
    await product.publish("1.1.0")
    wanted = await web.until_plan("ISSUED")
    async with there(plans, environment, tmp_path):
        await web.until_at("1.1.0")
    assert (await web.until_plan("SUCCEEDED", wanted.number)).to == "1.1.0"


async def test_orders_for_another_environment_or_record_are_not_taken(
    plans: Kit,
) -> None:
    record = await new_record(plans)
    await record.bind("run")
    for answer in (await record.take(1, starter="new"), await record.end(1, starter="new")):
        assert (answer.taken, answer.unbound) == (False, True)
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await record.take(1, record="another")
    refusal = refusal_in(caught.value.cause)
    assert refusal is not None
    assert refusal.code == Code.SUPERSEDED
    assert await record.ends() == {}

    await record.bind("new")
    assert (await record.take(1, starter="new")).taken


async def test_a_spoke_that_comes_before_the_first_document_registers_later(plans: Kit) -> None:
    """The environment runs a moment before its document is applied."""
    record = await new_record(plans)
    name = environment_id(record.environment)
    input = EnvironmentInput(name=record.environment)
    handle = await plans.client.start_workflow(
        "Environment", input, id=name, task_queue=plans.queue
    )
    identity = await identity_of_record(plans.client, record.environment, plans.queue)
    info = SpokeInfo(lineage="l", record=identity, boot="b", hostname="here")
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update("register_spoke", RegisterSpoke(info=info))
    refusal = refusal_in(refused.value.cause)
    assert refusal is not None
    assert refusal.code == Code.UNAVAILABLE

    spoke = Spoke(record.environment, info)
    registration = SpokeRegistration(spoke, plans.client, plans.client)
    registering = asyncio.create_task(registration.register())
    declaration = EnvironmentDeclaration.model_validate(
        {"name": record.environment, "settings": {"spoke": True}}
    )
    request = EnvironmentApply(environment=declaration, by="test")
    await handle.execute_update("apply", request, result_type=Outcome)
    async with asyncio.timeout(PATIENCE):
        await registering
    status = await handle.query("status", result_type=EnvironmentStatus)
    assert status.spoke is not None
    assert status.spoke.info == info
    await handle.terminate()


async def test_a_server_that_goes_away_as_the_workers_of_a_spoke_start_is_told(
    plans: Kit, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The SDK asks for the namespace then, once, and gives a worker up that gets no answer."""

    async def unanswered(_: bridge.Worker) -> object:
        raise RuntimeError("Worker validation failed: transport error")

    product, environment = new_product(plans), new_environment(plans)
    document = entities(product) | {"settings": {"release_channel": "stable", "spoke": True}}
    await environment.apply(document)
    monkeypatch.setattr(bridge.Worker, "validate", unanswered)
    bare = await Client.connect(
        plans.client.service_client.config.target_host, data_converter=pydantic_data_converter
    )
    settings = SpokeSettings(environment.name, work_dir=tmp_path, task_queue=plans.queue)
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(SpokeNotBegun, match=r"start it again: .*transport error"):
            await run_spoke(bare, bare, settings, stop=asyncio.Event())
