"""The connection of a process to a cluster: opened at the first use, and again when the cluster no
longer accepts its credentials, which may have been renewed meanwhile."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Cluster, connected
from temporal_plans.activities.kubernetes.errors import ClusterError


@dataclass
class _Session:
    cluster: Cluster
    stack: AsyncExitStack
    users: int = 0


class ClusterConnection:
    """One connection for all activities of a process, for ``async with``."""

    def __init__(self, access: ClusterAccess) -> None:
        self.name = access.name
        self._access = access
        self._session: _Session | None = None
        self._opening = asyncio.Lock()

    async def __aenter__(self) -> "ClusterConnection":
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._session is not None:
            await self._session.stack.aclose()
            self._session = None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[Cluster, None]:
        """Lend the cluster for one activity. Raises ClusterError when it can't be reached.

        After an answer 401 the next use reads the credentials again; uses that have begun keep
        their connection.
        """
        session = await self._current()
        session.users += 1
        try:
            yield session.cluster
        finally:
            session.users -= 1
            if session.cluster.expired and session is self._session:
                self._session = None
            if session is not self._session and not session.users:
                await session.stack.aclose()

    async def _current(self) -> _Session:
        async with self._opening:
            if self._session is None or self._session.cluster.expired:
                self._session = await self._open()
            return self._session

    async def _open(self) -> _Session:
        stack = AsyncExitStack()
        try:
            cluster = await stack.enter_async_context(
                connected(self._access.kubeconfig, self._access.context)
            )
        except ClusterError as error:
            await stack.aclose()
            raise ClusterError(
                f"cluster {self.name}: {error}", passing=True, status=error.status
            ) from error
        return _Session(cluster, stack)
