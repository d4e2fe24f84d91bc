"""What people ask an environment: explanations, the graph, and the table that follows it."""

import asyncio
from contextlib import suppress

import pytest

from pauses import until
from temporal_plans.cli.actions.fleet_showing import explained_entity, show_status
from temporal_plans.client.errors import Refused
from workflows.fleet_kit import entities, new_environment, new_product
from workflows.plan_kit import Kit


async def test_an_entity_is_explained_by_its_place_also_when_there_is_nothing_to_do(
    plans: Kit,
) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product))
    await product.publish("1.0.0")
    await environment.entity().until_at("1.0.0")
    client = environment.client

    async def listed() -> bool:
        return environment.name in await client.environments()

    await until(listed)
    answer = await explained_entity(client, f"{environment.name}/web")
    assert answer is not None
    assert answer.decision.code == "UP_TO_DATE"
    assert [(one.version, one.installed) for one in answer.candidates] == [("1.0.0", True)]
    with pytest.raises(Refused, match="has no entity 'none'; use one of: web"):
        await explained_entity(client, f"{environment.name}/none")
    assert await explained_entity(client, "none/web") is None
    graph = await client.fleet_graph(environment.name)
    assert [(one.name, one.version) for one in graph.entities] == [("web", "1.0.0")]


async def test_the_table_is_printed_again_whenever_it_changes(
    plans: Kit, capsys: pytest.CaptureFixture[str]
) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product))
    await environment.entity().until_code("CHANNEL_EMPTY")
    names = [environment.name]
    table = asyncio.create_task(show_status(environment.client, names, watch=True, as_json=False))
    printed = ""

    async def shown() -> str:
        nonlocal printed
        printed += capsys.readouterr().out
        return printed

    try:
        await until(shown, lambda text: "CHANNEL_EMPTY" in text)
        await product.publish("1.0.0")
        await until(shown, lambda text: "UP_TO_DATE" in text)
    finally:
        table.cancel()
        with suppress(asyncio.CancelledError):
            await table
    assert printed.index("CHANNEL_EMPTY") < printed.index("UP_TO_DATE")
