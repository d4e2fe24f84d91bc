"""Well-formed messages to environments, products and spokes by somebody who may signal and update:
nothing is blocked, loops, or is told what is not so."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime
from os import urandom

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError

from pauses import until
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.client.errors import Refused
from temporal_plans.domain.fleets.recalls import Recall
from temporal_plans.domain.fleets.releases import Release
from temporal_plans.domain.fleets.spokes import SpokeInfo
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.fleets.catalogues import Announcement
from temporal_plans.messages.fleets.declarations import EnvironmentDeclaration
from temporal_plans.messages.fleets.environments import EnvironmentApply
from temporal_plans.messages.fleets.products import ProductInput, RecallRelease
from temporal_plans.messages.fleets.requests import DeleteRequest
from temporal_plans.messages.fleets.stops import Suppress
from temporal_plans.messages.spokes import (
    PlanAtSpoke,
    RegisterSpoke,
    SpokeAccepted,
    SpokeAnswer,
    SpokeReport,
)
from workflows.fleet_kit import Environment, Workflow, entities, new_environment, new_product
from workflows.plan_kit import Kit

THEN = datetime(2026, 1, 5, tzinfo=UTC)


def handle_of(one: Workflow) -> WorkflowHandle[object, object]:
    return one.kit.client.get_workflow_handle(one.id)


async def length(one: Workflow) -> int:
    """The events of its current run."""
    return (await handle_of(one).describe()).history_length


async def test_a_revision_that_the_product_does_not_have(plans: Kit) -> None:
    """It is asked for once, and not for ever; what is published later is installed."""
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product))
    await product.publish("1.0.0")
    await environment.entity().until_at("1.0.0")
    forged = Announcement(product=product.name, revision=10**30)
    await handle_of(environment).signal("announced", forged)

    async def told() -> bool:
        return ("announced", "", "refused") in await environment.log()

    await until(told)
    before = await length(environment)
    await product.publish("1.1.0")
    await environment.entity().until_at("1.1.0")
    assert await length(environment) < before + 100


async def test_a_number_beyond_all_numbers(plans: Kit) -> None:
    """The environment goes on from the highest number that its spoke has: one that it could not
    carry to its next run is refused."""
    product, environment = new_product(plans), new_environment(plans)
    document = {**entities(product), "settings": {"spoke": True}}
    await environment.apply(document, history_limit=60)
    handle = handle_of(environment)
    info = SpokeInfo(lineage="l", record="r", boot="b")
    accepted = await handle.execute_update(
        "register_spoke", RegisterSpoke(info=info), result_type=SpokeAccepted
    )
    report = SpokeReport(lineage="l", record="r", starter=accepted.starter)
    for number in (10**30, 10**9):
        plan = PlanAtSpoke.model_construct(entity="web", number=number, at=THEN, started=True)
        forged = report.but(plans={"web.1": plan})
        try:
            await handle.execute_update("spoke_report", forged, result_type=SpokeAnswer)
        except WorkflowUpdateFailedError as error:
            assert number > 10**9
            refusal = refusal_in(error.cause)
            assert refusal is not None
            assert "1000000000" in str(refusal)
    first = (await handle.describe()).run_id

    async def next_run() -> bool:
        await handle.execute_update("spoke_report", report, result_type=SpokeAnswer)
        return (await handle.describe()).run_id != first

    await until(next_run)
    await product.publish("1.0.0")
    row = await environment.entity().until(lambda row: bool(row.plan_id))
    assert row.plan_id.endswith(f".{10**9 + 1}")


async def _applied(environment: Environment, *names: str) -> str:
    """What is answered to a document: a message, or a code."""
    product = new_product(environment.kit)
    document = {"name": environment.name, **entities(product, *names)}
    request = EnvironmentApply(environment=EnvironmentDeclaration.model_validate(document))
    handle = handle_of(environment)
    try:
        outcome: Outcome = await handle.execute_update("apply", request, result_type=Outcome)
    except WorkflowUpdateFailedError as error:
        refusal = refusal_in(error.cause)
        assert refusal is not None
        return str(refusal.code)
    return outcome.message


async def test_people_are_told_that_an_environment_is_being_deleted(plans: Kit) -> None:
    """A product of it that does not answer keeps it for a while."""
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product))
    await product.publish("1.0.0")
    await environment.entity().until_at("1.0.0")
    await handle_of(product).terminate()
    await plans.client.start_workflow(  # nobody serves it: it does not answer
        "Product", {"name": product.name}, id=product.id, task_queue=f"{plans.queue}-none"
    )
    try:
        await environment.update("delete", DeleteRequest())
        with pytest.raises(Refused, match="is being deleted"):
            await environment.client.ask_environment(environment.name, Suppress(by="ann"))
        assert await _applied(environment, "later") == Code.ENDING
    finally:
        await handle_of(product).terminate()
    await handle_of(environment).result()


def heavy(version: str, megabytes: float) -> Release:
    """A release that no compression makes smaller."""
    count = int(megabytes * 1_000_000 / 480)
    artifacts = tuple(b64encode(urandom(360)).decode() for _ in range(count))
    return Release(version=version, channels=("other",), artifacts=artifacts)


def releases(first: int, count: int) -> tuple[Release, ...]:
    return tuple(heavy(f"0.{first + number}.0", 0.04) for number in range(count))


async def test_a_product_is_filled(plans: Kit) -> None:
    """It refuses more than it can carry on, and goes on."""
    product = new_product(plans)
    start = ProductInput(name=product.name, history_limit=50)
    begun = await plans.client.start_workflow(
        "Product", start, id=product.id, task_queue=plans.queue
    )
    said = ""
    for number in range(0, 200, 10):
        try:
            await product.apply(releases=releases(number, 10))
        except Refused as error:
            said = str(error)
            break
    assert "the product is full: it carries " in said, said
    assert "remove what it does not need" in said
    for number in range(12):  # what must work always
        recall = Recall(id=f"r{number}", start="0.1.0")
        await product.client.recall(product.name, RecallRelease(recall=recall, reason="bad"))
    view = await product.client.releases(product.name)
    assert len(view.recalls) == 12
    assert (await handle_of(product).describe()).run_id != begun.first_execution_run_id


async def test_a_plan_that_waits_for_one_of_a_former_environment_says_so(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    work = f"{product.name} 1.0.0 install"
    plans.recorder.gates[work] = asyncio.Event()
    await environment.apply(entities(product))
    await product.publish("1.0.0")

    async def begun() -> bool:
        return work in plans.recorder.begun

    await until(begun)
    await environment.update("delete", DeleteRequest(force=True))
    await handle_of(environment).result()
    await environment.apply(entities(product))
    row = await environment.entity().until(lambda row: row.plan_status == "ISSUED")
    assert "another plan of its id still runs" in row.standing.message
    plans.recorder.gates.pop(work).set()
    await environment.entity().until_at("1.0.0")
    with pytest.raises(Refused, match="has no entity 'wbe'; did you mean web"):
        await environment.client.fleet_plans(environment.name, "wbe")
