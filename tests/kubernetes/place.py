"""Where packages are installed: a Temporal server and the shipped worker beside the control plane,
in processes of their own."""

import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client

from acceptance.programs import Program, Said, Server, run
from kubernetes.cluster_client import Object
from kubernetes.control_plane import ControlPlane
from kubernetes.listing import Identity
from pauses import until
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.temporal.connection import Connection, connect
from temporal_plans.messages.addresses import PLANS_QUEUE, cluster_queue

COMMAND = Path(sys.executable).parent / "temporal-plan"
CLUSTER = "main"

COMMAND_TIMEOUT = 240.0
"""Seconds that a command of people may take."""


class Place:
    """The cluster is called ``CLUSTER`` there. All that the processes keep is in ``folder``."""

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
            ["worker", "--kubernetes", f"{CLUSTER}={kubeconfig}"],
            env=self._env,
            log=folder / "worker.log",
        )
        self._client: Client | None = None

    @property
    def members(self) -> dict[str, Program | Server]:
        """What may be killed, by name."""
        return {"worker": self.worker, "temporal": self.server}

    async def start(self) -> None:
        """Start both; the worker must poll its queues within some seconds."""
        await self.server.start()
        await self.worker.start()
        await until(self._polls, patience=COMMAND_TIMEOUT)

    async def _polls(self) -> bool:
        assert self.worker.alive, self.logs()["worker"]
        workflows = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
        activities = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY
        queues = ((PLANS_QUEUE, workflows), (cluster_queue(CLUSTER), activities))
        return all([await self._has_poller(name, kind) for name, kind in queues])

    async def _has_poller(self, queue: str, kind: "TaskQueueType.ValueType") -> bool:
        request = DescribeTaskQueueRequest(
            namespace="default", task_queue=TaskQueue(name=queue), task_queue_type=kind
        )
        client = await self.temporal()
        return bool((await client.workflow_service.describe_task_queue(request)).pollers)

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
            self.plane.put_file(file, content)


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
