"""The Kubernetes cluster of ``demo --package``, and the namespace that the demo has there."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Cluster, connected
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.cli.terminal.output import print_line
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.worker.control_plane.plane import running_control_plane
from temporal_plans.worker.control_plane.programs import built, cache

CLUSTER = "main"
"""What the worker calls the cluster."""

OTHER_MANAGER = "kubectl-edit"
"""The field manager of a change by hand."""

REMOVAL_TIMEOUT = 120.0
"""Seconds that the objects of a namespace have to go."""

_LABELS = {"app.kubernetes.io/managed-by": "temporal-plans-demo"}
_PASSING_KINDS = frozenset({"Event", "EndpointSlice", "Endpoints", "ControllerRevision"})
"""What controllers make and remove in their own time."""

PIPED = ("/generated/password", "/checksum/backup")
"""Files that containers of the package would make. KWOK runs none, so that the demo makes them."""

Identity = tuple[str, str]
"""Kind and name."""


class DemoClusterError(UserFacingError, RuntimeError):
    """The demo can't have its cluster."""


@dataclass(frozen=True)
class DemoCluster:
    """A cluster that the demo reaches. ``ended`` raises when its processes, if they are ours, end;
    it never returns otherwise."""

    access: ClusterAccess
    api: Cluster
    ended: Callable[[], Awaitable[None]]


@asynccontextmanager
async def demo_cluster(context: str | None) -> AsyncGenerator[DemoCluster]:
    """Connect to the cluster of a context of the user's kubeconfig; without one run our own control
    plane. Raises DemoClusterError, ControlPlaneError."""
    if context is not None:
        async with _connected(ClusterAccess(CLUSTER, context=context)) as api:
            yield DemoCluster(ClusterAccess(CLUSTER, context=context), api, _never)
        return
    programs = built()
    if programs is None:
        raise DemoClusterError(
            f"control plane: none is built in {cache()}; type `make control-plane` in a clone of "
            "the project (a quarter of an hour, once), or name a cluster of yours with "
            "`--context NAME`"
        )
    print_line(
        "Starting a Kubernetes control plane: etcd, API server, controllers. KWOK plays the pods: "
        "no container runs."
    )
    async with running_control_plane(programs) as plane:
        for path in PIPED:
            plane.put_file(path, secrets.token_urlsafe(18))
        access = ClusterAccess(CLUSTER, plane.credentials.kubeconfig("admin"))
        async with _connected(access) as api:
            yield DemoCluster(access, api, plane.ended)


@asynccontextmanager
async def own_namespace(cluster: DemoCluster) -> AsyncGenerator[str]:
    """Create a namespace of a new name and yield that; delete it afterwards with all that it has.
    Raises DemoClusterError."""
    name = f"temporal-plans-demo-{secrets.token_hex(3)}"
    manifest = {**_namespace(name), "metadata": {"name": name, "labels": _LABELS}}
    try:
        made = await cluster.api.create(manifest)
    except ClusterError as error:
        raise DemoClusterError(f"cluster: {error}") from error
    if not made:
        raise DemoClusterError(f"namespace: {name} exists already; start the demo again")
    try:
        yield name
    finally:
        await _remove(cluster.api, name)


async def objects_in(cluster: Cluster, namespace: str) -> set[Identity]:
    """Return the objects of a namespace of all kinds that may be listed. Raises ClusterError."""
    found: set[Identity] = set()
    for version, kind, namespaced in await cluster.kinds():
        if not namespaced or kind in _PASSING_KINDS:
            continue
        like = {"apiVersion": version, "kind": kind, "metadata": {"namespace": namespace}}
        try:
            items, _ = await cluster.list_metadata(like, limit=500)
        except ClusterError as error:
            if error.status in (403, 404, 405):
                continue  # of such a kind the demo has nothing
            raise
        found |= {(kind, str(one["metadata"]["name"])) for one in items}
    return found


async def left_in(cluster: Cluster, namespace: str, before: set[Identity]) -> set[Identity]:
    """Return the objects that were not there before, once those have gone that go by themselves."""
    deadline = asyncio.get_running_loop().time() + REMOVAL_TIMEOUT
    while left := await objects_in(cluster, namespace) - before:
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.5)
    return left


async def change_by_hand(cluster: Cluster, manifest: dict[str, Any], change: Any) -> None:
    """Change some fields of an object, as a person would with ``kubectl edit``."""
    await cluster.merge(manifest, change, manager=OTHER_MANAGER)


@asynccontextmanager
async def _connected(access: ClusterAccess) -> AsyncGenerator[Cluster]:
    try:
        async with connected(access.kubeconfig, access.context) as api:
            await api.version()
            yield api
    except ClusterError as error:
        if access.context is None:
            raise
        fix = "`kubectl config get-contexts` lists the contexts of your kubeconfig"
        raise DemoClusterError(f"--context {access.context}: {error}; {fix}") from error


async def _remove(cluster: Cluster, name: str) -> None:
    """Delete a namespace and wait until it is gone; where that takes too long, say how to look."""
    by_hand = f"`kubectl delete namespace {name}` removes it"
    try:
        await cluster.delete(_namespace(name))
        async with asyncio.timeout(REMOVAL_TIMEOUT):
            while await cluster.get(_namespace(name)) is not None:
                await asyncio.sleep(0.3)
    except ClusterError as error:
        print_line(f"Namespace {name} is left: {error}; {by_hand}.")
    except TimeoutError:
        print_line(f"Namespace {name} is still being deleted; {by_hand}.")


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def _never() -> None:
    await asyncio.get_running_loop().create_future()
