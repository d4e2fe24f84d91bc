"""Reads releases: what their product's workflow knows, and their files in the content store."""

import json

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.messages.fleets import (
    ReleasePayload,
    ReleaseQuery,
    ReleaseRecord,
    product_id,
)


class Releases:
    """``client`` reaches the products, ``contents`` has the files."""

    def __init__(self, client: Client, contents: ContentStore) -> None:
        self._client = client
        self._contents = contents

    async def payload(self, product: str, version: str | None) -> ReleasePayload:
        """Return the files of a release; none for no version, and one that there is not. Raises
        RPCError while the server does not answer, and ContentMissing."""
        if version is None:
            return ReleasePayload()
        handle = self._client.get_workflow_handle(product_id(product))
        query = ReleaseQuery(version=version)
        try:
            record: ReleaseRecord = await handle.query("release", query, result_type=ReleaseRecord)
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return ReleasePayload()
            raise
        if not record.files.digest:
            return ReleasePayload()
        data = await self._contents.get(record.files.digest)
        return ReleasePayload(files=json.loads(data))

    async def keep(self, payload: ReleasePayload, holder: str) -> None:
        """Store the files of a release for as long as its holder is open."""
        await self._contents.hold(await self._contents.put(payload.data), holder)
