"""The control plane of the product, with what tests say to it."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from kubernetes.cluster_client import ClusterClient, connected
from temporal_plans.worker.control_plane import plane
from temporal_plans.worker.control_plane.programs import Programs

STRANGER = "nobody"
"""A user who may do nothing until a test gives it a role."""


class ControlPlane(plane.ControlPlane):
    """With the user ``STRANGER`` beside those of the product."""

    def __init__(self, folder: Path, programs: Programs) -> None:
        super().__init__(folder, programs, users={STRANGER: "tests"})

    def client(self, user: str = "admin") -> AbstractAsyncContextManager[ClusterClient]:
        """Connect as a user; for ``async with``."""
        return connected(self.credentials.kubeconfig(user))


@asynccontextmanager
async def running_control_plane(programs: Programs) -> AsyncGenerator[ControlPlane, None]:
    """A control plane in a temporary folder, stopped and removed at the end."""
    with TemporaryDirectory(prefix="control-plane-") as folder:
        plane = ControlPlane(Path(folder), programs)
        try:
            await plane.start()
            yield plane
        finally:
            await plane.stop()
