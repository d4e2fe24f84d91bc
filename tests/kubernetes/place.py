"""Where packages are installed: a Temporal server and the shipped worker beside the control plane,
in processes of their own."""

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.client import Client

from acceptance.programs import Program, Said, Server, run
from kubernetes.cluster_client import Object
from kubernetes.control_plane import ControlPlane
from kubernetes.listing import Identity
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.connection import Connection, connect

COMMAND = Path(sys.executable).parent / "temporal-plan"
COMMAND_TIMEOUT = 240.0
"""Seconds that a command of people may take."""


class Place:
    """The cluster is called ``main`` there. All that the processes keep is in ``folder``."""

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        self.plane = plane
        self.server = Server(folder / "temporal.db", folder / "temporal.log")
        self._folder = folder
        kubeconfig = plane.credentials.kubeconfig("admin")
        self._env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TEMPORAL_ADDRESS": self.server.address,
        }
        self.worker = Program(
            COMMAND,
            ["worker", "--kubernetes", f"main={kubeconfig}"],
            env=self._env,
            log=folder / "worker.log",
        )
        self._client: Client | None = None

    @property
    def members(self) -> dict[str, Program | Server]:
        """What may be killed, by name."""
        return {"worker": self.worker, "temporal": self.server}

    async def start(self) -> None:
        await self.server.start()
        await self.worker.start()

    async def stop(self) -> None:
        await self.worker.stop()
        await self.server.stop()

    def logs(self, lines: int = 40) -> dict[str, str]:
        """Return the last lines that each process printed."""
        return {
            name: "\n".join(member.log.read_text(errors="replace").splitlines()[-lines:])
            for name, member in self.members.items()
            if member.log.exists()
        }

    async def temporal(self) -> Client:
        """Return a connection, for what ``PlansClient`` has no verb for."""
        if self._client is None:
            connection = Connection(address=self.server.address, namespace="default")
            self._client = await connect(connection, environ={})
        return self._client

    async def client(self) -> PlansClient:
        return PlansClient(await self.temporal())

    async def command(self, *arguments: str, code: int = 0) -> Said:
        """Run ``temporal-plan`` as people do; it must end with this exit code."""
        said = await run(
            COMMAND, *arguments, env=self._env, cwd=self._folder, limit=COMMAND_TIMEOUT
        )
        assert said.code == code, f"not the exit code {code}:\n{said}"
        return said

    async def everything(self) -> dict[Identity, Object]:
        """Return all objects of the cluster by what identifies them."""
        async with self.plane.client() as cluster:
            return await cluster.everything()

    def make_files(self, files: Sequence[str], content: str) -> None:
        """Put files where pods have them."""
        for file in files:
            target = self.plane.files / file.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            made = target.with_name(f".{target.name}")
            made.write_text(content)
            made.replace(target)  # whoever reads sees one or the other


@asynccontextmanager
async def running_place(plane: ControlPlane) -> AsyncGenerator[Place, None]:
    """A place in a temporary folder, stopped and removed at the end."""
    with TemporaryDirectory(prefix="place-") as folder:
        place = Place(Path(folder), plane)
        try:
            await place.start()
            yield place
        finally:
            await place.stop()
