"""Environments that begin at once follow a product together."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

from temporalio.testing import ActivityEnvironment

from temporal_plans.activities.fleets.catalogues import CatalogueActivities
from temporal_plans.domain.fleets.products import Product
from temporal_plans.messages.fleets.catalogues import Catalogue, FetchCatalogue
from temporal_plans.messages.fleets.products import FollowProduct

IN_FLIGHT = 10
"""Updates that a Temporal server lets one workflow have at a time."""


class Server:
    """Answers as a product does, and counts the updates in flight."""

    def __init__(self) -> None:
        self.requests: list[FollowProduct] = []
        self.in_flight = self.most = 0

    async def execute_update_with_start_workflow(
        self, _name: str, request: FollowProduct, **_options: Any
    ) -> None:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.01)
        self.in_flight -= 1
        self.requests.append(request)

    def get_workflow_handle(self, _id: str) -> "Server":
        return self

    async def query(self, _name: str, **_options: Any) -> Catalogue:
        return Catalogue(revision=1, product=Product(id="shop:web"))


async def test_a_hundred_new_environments_follow_a_product_with_few_updates() -> None:
    server = Server()
    activities = CatalogueActivities(cast(Any, server))
    names = [f"place-{number}" for number in range(100)]

    def fetched(name: str) -> Any:
        request = FetchCatalogue(
            product="shop:web", environment=name, now=datetime(2026, 1, 5, tzinfo=UTC)
        )
        return ActivityEnvironment().run(activities.fetch_catalogue, request)

    await asyncio.gather(*map(fetched, names))
    followers = [name for one in server.requests for name in (one.environment, *one.others)]
    assert sorted(followers) == sorted(names)
    assert server.most == 1 < IN_FLIGHT
    assert len(server.requests) < IN_FLIGHT
