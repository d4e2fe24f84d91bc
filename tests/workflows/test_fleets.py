"""Environments and products on a real server: what is published is installed."""

from workflows.fleet_kit import entities, new_environment, new_product
from workflows.plan_kit import Kit


async def test_a_release_that_is_published_is_installed_in_both_environments(plans: Kit) -> None:
    product = new_product(plans)
    one, other = new_environment(plans), new_environment(plans)
    await product.apply()
    for environment in (one, other):
        await environment.apply(entities(product))
        assert (await environment.entity().until_code("CHANNEL_EMPTY")).standing.installed is None
    await product.publish("1.0.0")
    for environment in (one, other):
        await environment.entity().until_at("1.0.0")
    assert plans.recorder.done.count(f"{product.name} 1.0.0 install") == 2
