"""Activities of a spoke's process on the queue of its hub: orders, and a sign of life."""

import asyncio

from temporalio import activity
from temporalio.client import Client, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from temporal_plans.activities.contents.errors import ContentError
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.fleets.releases import Releases
from temporal_plans.activities.fleets.spoke.identity import Spoke
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.activities.mechanics.update_failures import refusal_in
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.plans import ChangeOrder
from temporal_plans.messages.spokes import SpokeEnd, SpokeOrder, Taken, WatchSpoke, spoke_id


class Watches:
    """How many watches of the hub this process has: a new one may begin before the end of the one
    before it is noticed."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = asyncio.Condition()

    async def begin(self) -> None:
        await self._add(1)

    async def end(self) -> None:
        await self._add(-1)

    async def _add(self, number: int) -> None:
        async with self._changed:
            self._count += number
            self._changed.notify_all()

    async def wait_until_lost(self, first: float) -> None:
        """Return when no watch has begun for ``first`` seconds, or when the last one has ended."""
        async with self._changed:
            try:
                async with asyncio.timeout(first):
                    await self._changed.wait_for(lambda: self._count > 0)
            except TimeoutError:
                return
            await self._changed.wait_for(lambda: self._count == 0)


class OrderActivities:
    """``releases`` are those of the hub, ``contents`` is the store of the spoke's own server, and
    ``client`` reaches that."""

    def __init__(
        self, spoke: Spoke, client: Client, releases: Releases, contents: ContentStore
    ) -> None:
        self._spoke = spoke
        self._client = client
        self._releases = releases
        self._contents = contents
        self.watches = Watches()
        self.stopping = asyncio.Event()

    @activity.defn(name="take_order")
    async def take_order(self, request: SpokeOrder) -> Taken:
        """Fetch the files that an order needs, and have the record take it. A retry of an order
        that was taken answers the same."""
        self._check_addressee(request.lineage, request.record)
        async with heartbeats():
            order = await self._with_contents(request.order)
            return await self._update("take", request.but(order=order))

    @activity.defn(name="end_order")
    async def end_order(self, request: SpokeEnd) -> Taken:
        """Have the record end a plan."""
        self._check_addressee(request.lineage, request.record)
        async with heartbeats():
            return await self._update("end", request)

    @activity.defn(name="watch_spoke")
    async def watch_spoke(self, request: WatchSpoke) -> None:
        """Heartbeat until this process stops, or the hub does not wait for it any more."""
        if request.boot != self._spoke.info.boot:
            text = "another start of the spoke was registered"
            raise ApplicationError(text, type="OtherBoot", non_retryable=True)
        await self.watches.begin()
        try:
            async with heartbeats(request.heartbeat.total_seconds()):
                await self.stopping.wait()
        except asyncio.CancelledError:
            details = activity.cancellation_details()
            if details is None or not details.not_found:
                raise
            # The run of the environment is over, and the next one watches, too: no failure.
        finally:
            await self.watches.end()

    def _check_addressee(self, lineage: str, record: str) -> None:
        """Raise ApplicationError for what another spoke is to do: a process that was replaced may
        still poll. It is retried, and reaches the other."""
        if (lineage, record) != (self._spoke.info.lineage, self._spoke.info.record):
            raise ApplicationError("this is for another spoke", type="OtherSpoke")

    async def _with_contents(self, order: ChangeOrder) -> ChangeOrder:
        """Return an order whose files are in the store of the spoke. What is missing at the hub is
        refused there, as without a spoke."""
        contents: dict[str, str] = {}
        for version in {order.to.version, order.before.version} - {None}:
            assert version is not None
            try:
                payload = await self._releases.payload(order.product, version)
            except ContentError as error:
                text = f"the files of {order.product} {version} can't be read: {error}"
                raise refusal_error(Refusal.of(Code.FAILED, text)) from error
            await self._keep(payload, order.plan_id)
            contents[version] = payload.digest
        return order.but(contents=contents)

    async def _keep(self, payload: ReleasePayload, holder: str) -> None:
        """Copy what a release carries to the store of the spoke, for as long as its plan runs."""
        if not payload.names:
            return
        held = [payload.data]
        if payload.package is not None:
            digests = (payload.package.digest, *payload.package.nested)
            held += [await self._releases.content(digest) for digest in digests]
        for data in held:
            await self._contents.hold(await self._contents.put(data), holder)

    async def _update(self, name: str, request: SpokeOrder | SpokeEnd) -> Taken:
        handle = self._client.get_workflow_handle(spoke_id(self._spoke.environment))
        try:
            answer: Taken = await handle.execute_update(name, request, result_type=Taken)
        except WorkflowUpdateFailedError as error:
            refusal = refusal_in(error.cause)
            if refusal is None:
                raise
            if refusal.code == Code.UNAVAILABLE:  # it is full of others; a retry finds room
                raise ApplicationError(str(refusal), type="Full") from None
            return Taken(taken=False, why=str(refusal)[:1000])
        if answer.unbound:  # the environment is a new one of its name: this process registers soon
            raise ApplicationError(answer.why, type="NotBound")
        return answer
