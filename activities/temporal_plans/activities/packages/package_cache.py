"""The packages that a worker uses, read once."""

import asyncio
from collections import OrderedDict
from typing import Protocol

from temporal_plans.domain.packages.package import Package
from temporal_plans.loading.packages.stored import stored_package

CACHE_SIZE_LIMIT = 16 * 1024 * 1024
"""Bytes of archives whose packages are in memory, where they take three times as much. An archive
has at most 10 MB, and mostly some 100 kB."""


class Contents(Protocol):
    """Where archives of packages come from."""

    async def get(self, digest: str) -> bytes:
        """Return the bytes of this digest. Raises RefusedError."""
        ...


class PackageCache:
    """The packages used last, by the digest of their archives, whose sizes are ``limit`` bytes at
    most. One larger than that is kept alone."""

    def __init__(self, contents: Contents, *, limit: int = CACHE_SIZE_LIMIT) -> None:
        self._contents = contents
        self._limit = limit
        self._size = 0
        self._packages: OrderedDict[str, tuple[Package, int]] = OrderedDict()

    async def get(self, digest: str) -> Package:
        """Return a package. Raises RefusedError when its archive is not there or can't be read."""
        if digest not in self._packages:
            data = await self._contents.get(digest)
            self._keep(digest, await asyncio.to_thread(stored_package, data, digest), len(data))
        self._packages.move_to_end(digest)
        return self._packages[digest][0]

    def _keep(self, digest: str, package: Package, size: int) -> None:
        _, known = self._packages.get(digest, (package, 0))  # another call may have read it, too
        self._packages[digest] = package, size
        self._size += size - known
        while self._size > self._limit and len(self._packages) > 1:
            _, (_, dropped) = self._packages.popitem(last=False)
            self._size -= dropped
