"""Activities between products and the environments that have their entities."""

from temporalio import activity
from temporalio.client import Client, WithStartWorkflowOperation
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.fleets.declarations import window_of
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.messages.fleets import (
    Announce,
    Announced,
    Catalogue,
    FetchCatalogue,
    FollowProduct,
    KnownProduct,
    ProductInput,
    StopFollowing,
    environment_id,
    product_id,
)


class CatalogueActivities:
    """``client`` reaches products and environments."""

    def __init__(self, client: Client) -> None:
        self._client = client

    @activity.defn(name="fetch_catalogue")
    async def fetch_catalogue(self, request: FetchCatalogue) -> KnownProduct:
        """Return what there is of a product, and have it announce changes from now on. A product
        that was not applied yet begins empty, so that its first release is announced, too."""
        async with heartbeats():
            if request.follow:
                await self._follow(request.product, request.environment)
            handle = self._client.get_workflow_handle(product_id(request.product))
            catalogue = await handle.query("catalogue", result_type=Catalogue)
        window = window_of(catalogue.maintenance_window, request.now)
        return KnownProduct(
            revision=catalogue.revision,
            product=catalogue.product.but(window=window),
            until=window.until if window else None,
        )

    async def _follow(self, product: str, environment: str) -> None:
        start = WithStartWorkflowOperation[object, object](
            "Product",
            ProductInput(name=product),
            id=product_id(product),
            task_queue=activity.info().task_queue,
            static_summary=f"product {product}",
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
        )
        await self._client.execute_update_with_start_workflow(
            "follow",
            FollowProduct(environment=environment),
            start_workflow_operation=start,
            result_type=Outcome,
        )

    @activity.defn(name="stop_following")
    async def stop_following(self, request: StopFollowing) -> None:
        """Have products announce nothing more to an environment."""
        message = FollowProduct(environment=request.environment, follows=False)
        for product in request.products:
            handle = self._client.get_workflow_handle(product_id(product))
            try:
                await handle.execute_update("follow", message, result_type=Outcome)
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise

    @activity.defn(name="announce")
    async def announce(self, request: Announce) -> Announced:
        """Signal the environments that have entities of a product that it has a new revision. One
        may arrive twice: environments compare revisions."""
        async with heartbeats():
            gone = await gather_bounded(
                self._announce_to(one, request) for one in request.environments
            )
        return Announced(gone=tuple(one for one in gone if one))

    async def _announce_to(self, environment: str, request: Announce) -> str:
        handle = self._client.get_workflow_handle(environment_id(environment))
        try:
            await handle.signal("announced", request.announcement)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return environment
        return ""
