"""The contents that activities of this process read last."""

from collections import OrderedDict

from temporal_plans.activities.contents.store import ContentStore

CACHE_SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes of contents in memory."""


class CachedContents:
    """Keeps the contents used last in memory, up to ``limit`` bytes; ``store`` has them all."""

    def __init__(self, store: ContentStore, *, limit: int = CACHE_SIZE_LIMIT) -> None:
        self._store = store
        self._limit = limit
        self._size = 0
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    async def put(self, data: bytes) -> str:
        digest = await self._store.put(data)
        self._keep(digest, data)
        return digest

    async def get(self, digest: str) -> bytes:
        data = self._kept.get(digest)
        if data is None:
            data = await self._store.get(digest)
        self._keep(digest, data)
        return data

    async def hold(self, digest: str, holder: str) -> None:
        await self._store.hold(digest, holder)

    async def release(self, digest: str, holder: str) -> None:
        await self._store.release(digest, holder)

    def _keep(self, digest: str, data: bytes) -> None:
        if digest not in self._kept:
            self._size += len(data)
        self._kept[digest] = data
        self._kept.move_to_end(digest)
        while self._size > self._limit:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped)
