"""Verbs for contents: packages, manifests and large files, stored by their SHA-256."""

from temporal_plans.client.verbs.base import Verbs


class ContentVerbs(Verbs):
    """The verbs for contents. The store is chosen by ``TEMPORAL_PLANS_CONTENTS``."""

    async def put_content(self, data: bytes) -> str:
        """Store bytes, at most 10 MB, and return their SHA-256. They are kept for a day, and then
        as long as a workflow holds them. Raises Refused."""
        return await self._gateway.put_content(data)

    async def get_content(self, digest: str) -> bytes:
        """Return the bytes of a SHA-256. Raises Refused when they are missing or damaged."""
        return await self._gateway.get_content(digest)
