"""Activities between products and the environments that have their entities."""

from collections.abc import Sequence
from datetime import timedelta

from temporalio import activity
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
)
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.fleets.declarations import window_of
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.joined_calls import JoinedCalls
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.shared_calls import SharedCalls
from temporal_plans.activities.mechanics.update_failures import refusal_of
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.values.compressed import compress
from temporal_plans.messages.fleets.catalogues import (
    Announce,
    AnnounceBeginning,
    Announced,
    Announcement,
    Catalogue,
    FetchCatalogue,
    KnownProduct,
    StopFollowing,
)
from temporal_plans.messages.fleets.names import environment_id, product_id
from temporal_plans.messages.fleets.products import FOLLOWERS_AT_ONCE, FollowProduct, ProductInput
from temporal_plans.messages.promotions import (
    CanaryAnswer,
    ChannelRules,
    KnownChannels,
    ReportCanaries,
)

_ASKED_LIMIT = 5
"""Products that are asked for the rules of channels."""
_ANSWER_TIMEOUT = timedelta(seconds=5)
_CUT_OFF = "('Terminated', 'Failed', 'TimedOut')"
"""How a product may end without an announcement."""


class CatalogueActivities:
    """``client`` reaches products and environments."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._catalogues = SharedCalls[Catalogue]()
        self._followers = JoinedCalls[str]()

    @activity.defn(name="fetch_catalogue")
    async def fetch_catalogue(self, request: FetchCatalogue) -> KnownProduct:
        """Return what there is of a product, and have it announce changes from now on. A product
        that was not applied yet begins empty, so that its first release is announced, too."""
        async with heartbeats():
            if request.follow:
                await self._follow(request.product, request.environment)
            handle = self._client.get_workflow_handle(product_id(request.product))

            async def asked() -> Catalogue:
                answer: Catalogue = await handle.query("catalogue", result_type=Catalogue)
                return answer

            catalogue = await self._catalogues.ask(request.product, asked)
        window = window_of(catalogue.maintenance_window, request.now)
        product = catalogue.product.but(window=window)
        return KnownProduct(
            revision=catalogue.revision,
            life=catalogue.life,
            product=product,
            size=len(compress(product.model_dump_json().encode())),
            until=window.until if window else None,
            tests=tuple(one for one in catalogue.tests if one.environment == request.environment),
            canary_channels=catalogue.canary_channels,
        )

    async def _follow(self, product: str, environment: str) -> None:
        async def sent(names: Sequence[str]) -> None:
            different = tuple(dict.fromkeys(names))
            for first in range(0, len(different), FOLLOWERS_AT_ONCE):
                await self._update_follow(product, different[first : first + FOLLOWERS_AT_ONCE])

        await self._followers.send(product, environment, sent)

    async def _update_follow(self, product: str, environments: Sequence[str]) -> None:
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
            FollowProduct(environment=environments[0], others=tuple(environments[1:])),
            start_workflow_operation=start,
            result_type=Outcome,
        )

    @activity.defn(name="stop_following")
    async def stop_following(self, request: StopFollowing) -> None:
        """Have products announce nothing more to an environment."""
        async with heartbeats():
            for product in request.products:
                await self._stop_following(product, request.environment)

    async def _stop_following(self, product: str, environment: str) -> None:
        message = FollowProduct(environment=environment, follows=False)
        try:
            await self._client.get_workflow_handle(product_id(product)).execute_update(
                "follow", message, result_type=Outcome
            )
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise

    @activity.defn(name="known_channels")
    async def known_channels(self, request: KnownChannels) -> ChannelRules:
        """Return the rules of channels that another product of the same workers knows: all products
        are given the same, and one that begins has missed them."""
        query = f"WorkflowType = 'Product' AND TaskQueue = '{activity.info().task_queue}'"
        running = self._client.list_workflows(f"{query} AND ExecutionStatus = 'Running'")
        asked = 0
        async with heartbeats():
            async for run in running:
                if run.id == product_id(request.product):
                    continue
                rules = await self._rules_of(run.id)
                if rules.channels:
                    return rules
                asked += 1
                if asked == _ASKED_LIMIT:
                    break
        return ChannelRules()

    async def _rules_of(self, product: str) -> ChannelRules:
        """Return what a product knows; nothing when it does not answer."""
        try:
            answer: ChannelRules = await self._client.get_workflow_handle(product).query(
                "channels", result_type=ChannelRules, rpc_timeout=_ANSWER_TIMEOUT
            )
        except (RPCError, WorkflowQueryFailedError):
            return ChannelRules()
        return answer

    @activity.defn(name="report_canaries")
    async def report_canaries(self, request: ReportCanaries) -> CanaryAnswer:
        """Report entities of an environment to their product. One that does not exist any more has
        announced its end. Raises ApplicationError (Refused, not retryable) where it refuses."""
        handle = self._client.get_workflow_handle(product_id(request.product))
        try:
            async with heartbeats():
                answer: CanaryAnswer = await handle.execute_update(
                    "canaries", request.reports, result_type=CanaryAnswer
                )
        except WorkflowUpdateFailedError as error:
            raise refusal_error(refusal_of(error.cause)) from None
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return CanaryAnswer()
        return answer

    @activity.defn(name="announce")
    async def announce(self, request: Announce) -> Announced:
        """Signal the environments that have entities of a product that it has a new revision. One
        may arrive twice: environments compare revisions."""
        async with heartbeats():
            ids = {environment_id(one): one for one in request.environments}
            gone = await gather_bounded(self._announce_to(one, request.announcement) for one in ids)
        return Announced(gone=tuple(ids[one] for one in gone if one))

    @activity.defn(name="announce_beginning")
    async def announce_beginning(self, request: AnnounceBeginning) -> None:
        """Where a product of the name was terminated before, tell all environments of the same
        workers: those that follow it follow the former one, which announces nothing any more."""
        queue = f"TaskQueue = '{activity.info().task_queue}'"
        former = f"WorkflowId = '{product_id(request.product)}' AND ExecutionStatus IN {_CUT_OFF}"
        running = f"WorkflowType = 'Environment' AND ExecutionStatus = 'Running' AND {queue}"
        announcement = Announcement(product=request.product, life=request.life)
        async with heartbeats():
            if not (await self._client.count_workflows(former)).count:
                return
            ids = [run.id async for run in self._client.list_workflows(running)]
            await gather_bounded(self._announce_to(one, announcement) for one in ids)

    async def _announce_to(self, environment: str, announcement: Announcement) -> str:
        """Return the id of an environment that is not there any more; else an empty text."""
        handle = self._client.get_workflow_handle(environment)
        try:
            await handle.signal("announced", announcement)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
            return environment
        return ""
