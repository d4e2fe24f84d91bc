"""Reads releases: what their product's workflow knows, and their files in the content store."""

from collections import OrderedDict

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.mechanics.shared_calls import SharedCalls
from temporal_plans.messages.fleets.installations import Installation
from temporal_plans.messages.fleets.names import product_id
from temporal_plans.messages.fleets.payloads import ReleasePayload
from temporal_plans.messages.fleets.product_views import ReleaseQuery, ReleaseRecord

RELEASES_KEPT = 50
"""Releases whose files are kept in memory: at most 100,000 characters each."""


class Releases:
    """``client`` reaches the products, ``contents`` has the files. Those of the last releases are
    kept in memory: what is published to a hundred environments is read once."""

    def __init__(self, client: Client, contents: ContentStore) -> None:
        self._client = client
        self._contents = contents
        self._records = SharedCalls[ReleaseRecord]()
        self._reads = SharedCalls[ReleasePayload]()
        self._kept: OrderedDict[str, ReleasePayload] = OrderedDict()

    async def payload(self, product: str, version: str | None) -> ReleasePayload:
        """Return the files of a release; none for no version, and one that there is not. Raises
        RPCError while the server does not answer, and ContentMissing."""
        if version is None:
            return ReleasePayload()
        handle = self._client.get_workflow_handle(product_id(product))
        query = ReleaseQuery(version=version)

        async def asked() -> ReleaseRecord:
            answer: ReleaseRecord = await handle.query("release", query, result_type=ReleaseRecord)
            return answer

        try:
            record = await self._records.ask((product, version), asked)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return ReleasePayload()
            raise
        return await self.files(record.files.digest)

    async def of_installation(self, one: Installation) -> ReleasePayload:
        """Return the files of the release that an entity is to have, wherever they are known."""
        if one.digest:
            return await self.files(one.digest)
        return await self.payload(one.product, one.version)

    async def content(self, digest: str) -> bytes:
        """Return the content of this digest. Raises ContentMissing."""
        return await self._contents.get(digest)

    async def files(self, digest: str) -> ReleasePayload:
        """Return the files of this digest; none for an empty one. Raises ContentMissing."""
        if not digest:
            return ReleasePayload()
        if (kept := self._kept.get(digest)) is not None:
            self._kept.move_to_end(digest)
            return kept

        async def read() -> ReleasePayload:
            return ReleasePayload.of(await self._contents.get(digest))

        found = self._kept[digest] = await self._reads.ask(digest, read)
        while len(self._kept) > RELEASES_KEPT:
            self._kept.popitem(last=False)
        return found

    async def keep(self, payload: ReleasePayload, holder: str) -> None:
        """Store the files of a release for as long as its holder is open, and keep its package,
        which is stored already, for as long. Raises ContentMissing."""
        if payload.package is not None:
            for digest in (payload.package.digest, *payload.package.nested):
                await self._contents.hold(digest, holder)
        await self._contents.hold(await self._contents.put(payload.data), holder)
