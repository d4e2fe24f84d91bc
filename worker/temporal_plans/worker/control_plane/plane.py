"""A Kubernetes control plane of real processes: etcd, the API server, the controllers, and KWOK,
which plays one node and its pods.

There is no scheduler: an admission policy of the API server puts every pod on the one node. And no
network between pods: what Services select is right, but nothing answers there.
"""

import asyncio
import shutil
import ssl
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from temporal_plans.activities.kubernetes.cluster import Cluster, connected
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.worker.child_program import ChildProgram
from temporal_plans.worker.control_plane import stages
from temporal_plans.worker.control_plane.credentials import Credentials
from temporal_plans.worker.control_plane.programs import Programs
from temporal_plans.worker.control_plane.stages import Manifest
from temporal_plans.worker.ports import LOOPBACK, free_ports

NODE = "node"
COMMANDS = ("cat", "false", "ls", "printf", "stat", "tar", "true")
"""What pods can execute. No others: commands run on this machine."""

START_TIMEOUT = 240.0
"""Seconds within which a control plane takes pods: a server takes ten seconds of a processor."""

_LOOK_INTERVAL = 0.1

_IDLE_CONTROLLERS = (
    "persistentvolume-binder-controller",  # KWOK binds claims, without volumes
    "persistentvolume-attach-detach-controller",
    "node-lifecycle-controller",  # the one node has no leases that could expire
    "taint-eviction-controller",
)

# A pod has the root folder of the machine elsewhere: absolute paths are below the working folder.
_COMMAND = """#!/bin/sh
for argument; do
  shift
  case $argument in /) argument=. ;; /*) argument=${{argument#/}} ;; esac
  set -- "$@" "$argument"
done
exec {program} "$@"
"""

_PLACEMENT: list[Manifest] = [
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "placement"},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "matchConditions": [{"name": "unplaced", "expression": "!has(object.spec.nodeName)"}],
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {
                        "expression": f"""[JSONPatch{{
                            op: "add", path: "/spec/nodeName", value: "{NODE}"}}]"""
                    },
                }
            ],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": "placement"},
        "spec": {"policyName": "placement"},
    },
]


class ControlPlaneError(UserFacingError, RuntimeError):
    """The control plane did not start, or one of its processes ended."""


class ControlPlane:
    """The processes of one control plane; all that they keep is in ``folder``.

    ``users`` are more users than ``credentials.USERS``, each with its group.
    """

    def __init__(
        self, folder: Path, programs: Programs, *, users: Mapping[str, str] | None = None
    ) -> None:
        ports = free_ports(5)
        self._etcd_port, self._etcd_peer_port, self._port, self._kcm_port, self._node_port = ports
        self._folder = folder
        self._programs = programs
        self.files = folder / "files"
        """The file system of all pods: what is put here, exec finds."""
        self.address = f"https://{LOOPBACK}:{self._port}"
        self.credentials = Credentials(folder, self.address, users or {})
        self.etcd = self._program("etcd", *self._etcd_arguments())
        self.server = self._program("kube-apiserver", *self._server_arguments())
        self.controllers = self._program("kube-controller-manager", *self._kcm_arguments())
        self.kwok = self._program("kwok", *self._kwok_arguments())

    @property
    def members(self) -> dict[str, ChildProgram]:
        """The processes in the order of their start, by name."""
        return {
            "etcd": self.etcd,
            "kube-apiserver": self.server,
            "kube-controller-manager": self.controllers,
            "kwok": self.kwok,
        }

    async def start(self) -> None:
        """Start all, and wait until a pod would become ready. Raises ControlPlaneError."""
        self.credentials.make()
        self.files.mkdir()
        self._make_commands()
        stages.write(stages.manifests(self.files), self._folder / "kwok.yaml")
        await self.etcd.start()
        await self.start_server()
        await self.controllers.start()
        await self.kwok.start()
        async with connected(self.credentials.kubeconfig("admin")) as cluster:
            for manifest in (*_PLACEMENT, _node()):
                await cluster.apply(manifest)
            await self._until_pods_run(cluster)

    async def start_server(self) -> None:
        """Start the API server, and wait until it is ready. Raises ControlPlaneError."""
        await self.server.start()
        await self._until("the API server is ready", lambda: asyncio.to_thread(self._is_ready))

    async def stop(self) -> None:
        """Stop all, in the opposite order."""
        for member in reversed(self.members.values()):
            await member.stop()

    async def ended(self) -> None:
        """Wait until a process ends by itself, which it should not. Raises ControlPlaneError."""
        waiting = {asyncio.create_task(each.wait()): each for each in self.members.values()}
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                raise _ended(waiting[one])
        finally:
            for one in waiting:
                one.cancel()

    def put_file(self, path: str, content: str) -> None:
        """Put a file where pods have it under an absolute path; readers see all of it or none."""
        target = self.files / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_name(f".{target.name}")
        made.write_text(content)
        made.replace(target)

    def logs(self, lines: int = 40) -> dict[str, str]:
        """Return the last lines that each process printed."""
        return {
            name: member.tail(lines) for name, member in self.members.items() if member.log.exists()
        }

    async def _until(self, noun: str, holds: Callable[[], Awaitable[bool]]) -> None:
        try:
            async with asyncio.timeout(START_TIMEOUT):
                while not await holds():
                    for member in self.members.values():
                        if member.started and not member.alive:
                            raise _ended(member)
                    await asyncio.sleep(_LOOK_INTERVAL)
        except TimeoutError:
            raise ControlPlaneError(
                f"control plane: {START_TIMEOUT:g} s were too short until {noun}; its output is in "
                f"{self._folder}"
            ) from None

    def _is_ready(self) -> bool:
        trusted = ssl.create_default_context(cafile=str(self.credentials.authority))
        try:
            with urllib.request.urlopen(
                f"{self.address}/readyz", context=trusted, timeout=5
            ) as is_:
                return bool(is_.status == 200)
        except OSError:
            return False

    async def _until_pods_run(self, cluster: Cluster) -> None:
        """The policy and the namespace's service account take effect a moment after they are
        there, and a pod that came before would stay without a node."""
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": "default"},
            "spec": {"containers": [{"name": "probe", "image": "probe"}]},
        }

        async def placed() -> bool:
            try:
                answer = await cluster.apply(pod, dry_run=True)
            except ClusterError as error:
                if error.status in (403, 404):
                    return False
                raise
            return bool(answer["spec"].get("nodeName") == NODE)

        async def node_is_ready() -> bool:
            node = await cluster.get(_node())
            conditions = (node or {}).get("status", {}).get("conditions", [])
            return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

        await self._until("pods have a node", placed)
        await self._until("the node is ready", node_is_ready)

    def _program(self, name: str, *arguments: str) -> ChildProgram:
        return ChildProgram(
            self._programs.path(name),
            arguments,
            env={"HOME": str(self._folder), "PATH": str(self._commands)},
            log=self._folder / f"{name}.log",
        )

    @property
    def _commands(self) -> Path:
        return self._folder / "commands"

    def _make_commands(self) -> None:
        self._commands.mkdir()
        for name in COMMANDS:
            program = shutil.which(name)
            if program is None:
                raise ControlPlaneError(f"control plane: no program {name} on the PATH; install it")
            script = self._commands / name
            script.write_text(_COMMAND.format(program=program))
            script.chmod(0o755)

    def _etcd_arguments(self) -> list[str]:
        clients = f"http://{LOOPBACK}:{self._etcd_port}"
        peers = f"http://{LOOPBACK}:{self._etcd_peer_port}"
        return [
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",  # what it keeps does not outlive the machine
            "--log-level=warn",
        ]

    def _server_arguments(self) -> list[str]:
        own = self.credentials
        return [
            f"--etcd-servers=http://{LOOPBACK}:{self._etcd_port}",
            f"--bind-address={LOOPBACK}",
            f"--advertise-address={LOOPBACK}",
            f"--secure-port={self._port}",
            f"--kubelet-certificate-authority={own.authority}",
            f"--tls-cert-file={own.certificate}",
            f"--tls-private-key-file={own.key}",
            f"--token-auth-file={own.tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={own.key}",
            f"--service-account-signing-key-file={own.key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",  # no endpoint may be a loopback address
            "--allow-privileged=true",
        ]

    def _kcm_arguments(self) -> list[str]:
        own = self.credentials
        return [
            f"--kubeconfig={own.kubeconfig('programs')}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={self._kcm_port}",
            f"--tls-cert-file={own.certificate}",
            f"--tls-private-key-file={own.key}",
            f"--service-account-private-key-file={own.key}",
            f"--root-ca-file={own.authority}",
            "--leader-elect=false",
            f"--controllers=*,{','.join(f'-{name}' for name in _IDLE_CONTROLLERS)}",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    def _kwok_arguments(self) -> list[str]:
        own = self.credentials
        return [
            f"--kubeconfig={own.kubeconfig('programs')}",
            f"--config={self._folder / 'kwok.yaml'}",
            "--manage-all-nodes",
            "--node-lease-duration-seconds=0",
            f"--node-ip={LOOPBACK}",
            f"--node-port={self._node_port}",
            f"--server-address={LOOPBACK}:{self._node_port}",
            f"--tls-cert-file={own.certificate}",
            f"--tls-private-key-file={own.key}",
        ]


def _node() -> Manifest:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}


def _ended(member: ChildProgram) -> ControlPlaneError:
    return ControlPlaneError(
        f"control plane: {member.name} ended unexpectedly. Its last lines:\n{member.tail()}"
    )


@asynccontextmanager
async def running_control_plane(programs: Programs) -> AsyncGenerator[ControlPlane, None]:
    """Run a control plane in a temporary folder; stop and remove it afterwards. Raises
    ControlPlaneError."""
    with TemporaryDirectory(prefix="control-plane-") as folder:
        plane = ControlPlane(Path(folder), programs)
        try:
            await plane.start()
            yield plane
        finally:
            await plane.stop()
