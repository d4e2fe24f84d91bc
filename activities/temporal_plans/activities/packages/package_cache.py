"""The packages that a worker uses, read once."""

import asyncio
from collections import OrderedDict
from typing import Protocol

from temporal_plans.domain.packages.package import Package
from temporal_plans.loading.packages.stored import stored_package

_COUNT_LIMIT = 100
"""Packages in memory; one has at most 10 MB, and mostly some 100 kB."""


class Contents(Protocol):
    """Where archives of packages come from."""

    async def get(self, digest: str) -> bytes:
        """Return the bytes of this digest. Raises RefusedError."""
        ...


class PackageCache:
    """The packages read last, by the digest of their archives."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents
        self._packages: OrderedDict[str, Package] = OrderedDict()

    async def get(self, digest: str) -> Package:
        """Return a package. Raises RefusedError when its archive is not there or can't be read."""
        package = self._packages.get(digest)
        if package is None:
            data = await self._contents.get(digest)
            package = await asyncio.to_thread(stored_package, data, digest)
        self._packages[digest] = package
        self._packages.move_to_end(digest)
        while len(self._packages) > _COUNT_LIMIT:
            self._packages.popitem(last=False)
        return package
