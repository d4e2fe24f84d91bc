"""A cluster whose pods make files: what a Pipe task reads in a pod is the pod's uid, so that what
was made says by which pod it was made. And a worker that is killed between two requests."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from temporal_plans.activities.kubernetes.cluster import Cluster, Manifest, Object
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.kubernetes.pod_command import Container, Executed


class Killed(BaseException):
    """The worker's process ends here."""


class MakingCluster:
    """Passes everything to a real cluster. ``files``: what each pod makes, below the folder of all
    pods; ``seams`` are the requests so far that change or read something. The worker is killed
    before or after the one of ``killed_at``. ``after_reading`` is called when all files were
    read, and ``meanwhile`` between the last look at the pod, which follows, and the objects."""

    def __init__(self, cluster: Cluster, folder: Path, files: Sequence[str]) -> None:
        self._cluster = cluster
        self._folder = folder
        self._files = files
        self.seams: list[str] = []
        self.killed_at: tuple[int, str] | None = None
        self.after_reading: Callable[[], Awaitable[object]] | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def get(self, manifest: Manifest) -> Object | None:
        live = await self._cluster.get(manifest)
        if self.meanwhile and manifest["kind"] == "Pod" and self.seams[-1:] == ["tar"]:
            await self.meanwhile()
        return live

    async def apply(self, manifest: Manifest, **options: Any) -> Object:
        async with self._seam(f"apply {manifest['kind']}"):
            return await self._cluster.apply(manifest, **options)

    async def delete(self, manifest: Manifest) -> bool:
        async with self._seam(f"delete {manifest['kind']}"):
            return await self._cluster.delete(manifest)

    async def execute(
        self, container: Container, command: Sequence[str], *, limit: int
    ) -> Executed:
        pod = {"apiVersion": "v1", "kind": "Pod"}
        metadata = {"name": container.pod, "namespace": container.namespace}
        live = await self._cluster.get({**pod, "metadata": metadata})
        for file in self._files:
            target = self._folder / file.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if live is not None:
                target.write_text(f"UID={live['metadata']['uid']}")
        async with self._seam(command[0]):
            executed = await self._cluster.execute(container, command, limit=limit)
        if self.after_reading and self.seams.count("tar") == len(self._files):
            await self.after_reading()
        return executed

    @asynccontextmanager
    async def _seam(self, name: str) -> AsyncGenerator[None, None]:
        self.seams.append(name)
        number = len(self.seams) - 1
        if self.killed_at == (number, "before"):
            raise Killed
        yield
        if self.killed_at == (number, "after"):
            raise Killed


class MakingConnection:
    """The connection of a worker, lending such a cluster."""

    def __init__(self, connection: ClusterConnection, folder: Path, files: Sequence[str]) -> None:
        self._connection = connection
        self._folder = folder
        self._files = files
        self.seams: list[str] = []
        self.killed_at: tuple[int, str] | None = None
        self.after_reading: Callable[[], Awaitable[object]] | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    @asynccontextmanager
    async def use(self) -> AsyncGenerator[MakingCluster, None]:
        async with self._connection.use() as cluster:
            making = MakingCluster(cluster, self._folder, self._files)
            making.seams, making.killed_at = self.seams, self.killed_at
            making.after_reading, making.meanwhile = self.after_reading, self.meanwhile
            yield making
