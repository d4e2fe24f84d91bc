"""Ramped rollouts on a real server: a product's document says over how long upgrades are spread."""

from datetime import datetime

from temporal_plans.messages.fleets.declarations import ProductDeclaration
from temporal_plans.messages.fleets.products import ProductApply
from workflows.fleet_kit import Product, entities, new_environment, new_product
from workflows.plan_kit import Kit

NAMES = tuple(f"web{number}" for number in range(6))


async def paced(product: Product, length: str) -> None:
    declaration = ProductDeclaration.model_validate(
        {"name": product.name, "rollouts": {"stable": length}}
    )
    await product.client.apply_product(ProductApply(product=declaration))


async def test_upgrades_are_spread_and_installations_are_not(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await paced(product, "1000h")  # no name gives it a head start that matters
    await environment.apply(entities(product, *NAMES))
    await product.publish("1.0.0")
    for name in NAMES:
        await environment.entity(name).until_at("1.0.0")

    await product.publish("1.1.0")
    for name in NAMES:
        row = await environment.entity(name).until_code("RAMP_LIMIT")
        assert row.standing.installed == "1.0.0"
    view = await product.client.releases(product.name)
    assert {(one.version, one.channel) for one in view.ramps} == {
        ("1.0.0", "stable"),
        ("1.1.0", "stable"),
    }


async def test_all_start_within_the_time(plans: Kit) -> None:
    product, environment = new_product(plans), new_environment(plans)
    await environment.apply(entities(product, *NAMES))
    await product.publish("1.0.0")
    for name in NAMES:
        await environment.entity(name).until_at("1.0.0")
    await paced(product, "3s")
    await product.publish("1.1.0")
    starts: list[datetime] = []
    for name in NAMES:
        await environment.entity(name).until_at("1.1.0")
        [plan] = [one for one in await environment.entity(name).plans() if one.number == 2]
        assert plan.issued_at is not None
        starts.append(plan.issued_at)
    [ramp] = (await product.client.releases(product.name)).ramps
    passed = sorted((one - ramp.started_at).total_seconds() for one in starts)
    # Of six entities at most one starts in each half second, and one more by its head start.
    assert all(number <= second / 0.5 + 1 for number, second in enumerate(passed)), passed
