"""The control plane is a real one: objects become what they would become in a cluster, and KWOK
plays what machines would do. Nothing of the product is needed here."""

import io
import tarfile

import pytest
from aiohttp import ClientConnectionError
from kubernetes_asyncio.client.exceptions import ApiException

from kubernetes.cluster_client import ClusterClient, Object
from kubernetes.control_plane import ControlPlane
from kubernetes.manifests import config_map, deployment, job, pod, stateful_set
from kubernetes.namespaces import LONG, Namespace
from pauses import until
from temporal_plans.worker.control_plane.plane import NODE
from temporal_plans.worker.control_plane.stages import PodFate
from tools.control_plane import MODULE


async def test_the_server_knows_its_version(cluster: ClusterClient) -> None:
    version = await cluster.version()
    assert f"k8s.io/kubernetes {version} " in (MODULE / "go.mod").read_text()


async def test_a_deployment_becomes_ready_and_takes_a_change(namespace: Namespace) -> None:
    applied = await namespace.apply(deployment("web", replicas=2))
    assert "status" not in applied or not applied["status"].get("readyReplicas")
    ready = await namespace.until("apps/v1", "Deployment", "web", _is_ready)
    assert ready["status"]["readyReplicas"] == 2
    pods = await namespace.until_pods("app=web", lambda pods: len(pods) == 2)
    assert {one["spec"]["nodeName"] for one in pods} == {NODE}

    await namespace.apply(deployment("web", replicas=3))
    ready = await namespace.until("apps/v1", "Deployment", "web", _is_ready)
    assert ready["status"]["readyReplicas"] == 3


async def test_a_stateful_set_becomes_ready_with_its_claims(namespace: Namespace) -> None:
    await namespace.apply(stateful_set("db", replicas=2, storage="1Gi"))
    await namespace.until(
        "apps/v1", "StatefulSet", "db", lambda one: one["status"].get("readyReplicas") == 2
    )
    claim = await namespace.until("v1", "PersistentVolumeClaim", "data-db-1", _is_bound)
    assert claim["status"]["capacity"] == {"storage": "1Gi"}


async def test_a_crashing_pod_is_restarted_again_and_again(namespace: Namespace) -> None:
    await namespace.apply(deployment("bad", fate=PodFate.CRASH))
    pods = await namespace.until_pods("app=bad", lambda pods: _restarts(pods) >= 3)
    (container,) = pods[0]["status"]["containerStatuses"]
    assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    assert not container["ready"]
    found = await namespace.cluster.get("apps/v1", "Deployment", "bad", namespace.name)
    assert found is not None
    assert not found["status"].get("readyReplicas")


async def test_a_hanging_pod_stays_as_it_is(namespace: Namespace) -> None:
    await namespace.apply(deployment("slow", fate=PodFate.HANG))
    pods = await namespace.until_pods("app=slow", lambda pods: pods and _containers(pods[0]))
    (container,) = _containers(pods[0])
    assert container["state"]["waiting"]["reason"] == "ContainerCreating"
    assert pods[0]["status"]["phase"] == "Pending"
    # A pod that came later is ready: KWOK has looked at the hanging one long since.
    await namespace.apply(pod("later"))
    await namespace.until_pods("app=later", lambda pods: pods and _is_ready(pods[0]))
    (still,) = await namespace.cluster.list("v1", "Pod", namespace.name, "app=slow")
    assert not _is_ready(still)


@pytest.mark.parametrize(
    ("fate", "condition"),
    [
        pytest.param(None, "Complete", id="succeeds"),
        pytest.param(PodFate.FAIL, "Failed", id="fails"),
    ],
)
async def test_a_job_ends(namespace: Namespace, fate: PodFate | None, condition: str) -> None:
    await namespace.apply(job("once", fate=fate))
    await namespace.until("batch/v1", "Job", "once", lambda one: condition in _true(one))


async def test_exec_answers_in_a_pod(namespace: Namespace, control_plane: ControlPlane) -> None:
    await namespace.apply(pod("maker"))
    await namespace.until_pods("app=maker", lambda pods: pods and _is_ready(pods[0]))
    made = control_plane.files / "tmp" / "secret.bin"
    made.parent.mkdir(exist_ok=True)  # other tests have pods, too
    made.write_bytes(b"\x00\xff binary\n")

    size = await namespace.cluster.execute(
        namespace.name, "maker", "stat", "-c", "%s", "/tmp/secret.bin"
    )
    assert (size.code, size.out) == (0, b"10\n")

    packed = await namespace.cluster.execute(
        namespace.name, "maker", "tar", "cf", "-", "/tmp/secret.bin"
    )
    with tarfile.open(fileobj=io.BytesIO(packed.out)) as archive:
        member = archive.extractfile("tmp/secret.bin")
        assert member is not None
        assert member.read() == b"\x00\xff binary\n"

    failed = await namespace.cluster.execute(namespace.name, "maker", "cat", "/not/there")
    assert failed.code == 1
    assert b"No such file" in failed.err


async def test_a_namespace_is_deleted_with_all_that_is_in_it(namespace: Namespace) -> None:
    await namespace.apply(deployment("web"))
    await namespace.apply(job("once"))
    await namespace.until("apps/v1", "Deployment", "web", _is_ready)
    await namespace.delete()

    async def looked_up() -> Object | None:
        return await namespace.cluster.get("v1", "Namespace", namespace.name)

    await until(looked_up, lambda found: found is None, patience=LONG)
    assert await namespace.cluster.list("v1", "Pod", namespace.name) == []


async def test_what_an_owner_owns_goes_with_it(namespace: Namespace) -> None:
    owner = await namespace.apply(config_map("owner"))
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    ]
    await namespace.apply(owned)
    await namespace.cluster.delete("v1", "ConfigMap", "owner", namespace.name)
    await namespace.until("v1", "ConfigMap", "owned", lambda found: found is None)


async def test_a_user_without_a_role_is_refused(
    control_plane: ControlPlane, namespace: Namespace
) -> None:
    async with control_plane.client("nobody") as client:
        with pytest.raises(ApiException) as refused:
            await client.list("v1", "Pod", namespace.name)
    assert refused.value.status == 403


async def test_a_killed_server_keeps_its_objects(
    control_plane: ControlPlane, namespace: Namespace, cluster: ClusterClient
) -> None:
    applied = await namespace.apply(config_map("kept", key="value"))
    before = control_plane.server.pid
    await control_plane.server.kill()
    try:
        with pytest.raises(ClientConnectionError):
            await cluster.get("v1", "ConfigMap", "kept", namespace.name)
    finally:
        await control_plane.start_server()
    assert control_plane.server.pid != before
    kept = await cluster.get("v1", "ConfigMap", "kept", namespace.name)
    assert kept is not None
    assert kept["data"] == {"key": "value"}
    assert kept["metadata"]["uid"] == applied["metadata"]["uid"]
    # The controllers and KWOK go on by themselves.
    await namespace.apply(deployment("after"))
    await namespace.until("apps/v1", "Deployment", "after", _is_ready)
    await (await Namespace.made(cluster)).delete()


def _true(one: Object) -> set[str]:
    """The types of the conditions that are true."""
    conditions = (one or {}).get("status", {}).get("conditions", [])
    return {condition["type"] for condition in conditions if condition["status"] == "True"}


def _is_ready(one: Object) -> bool:
    """Whether a pod is ready, or all replicas of a Deployment are as they are wanted now."""
    if one["kind"] == "Pod":
        return "Ready" in _true(one)
    status, wanted = one.get("status", {}), one["spec"]["replicas"]
    seen = status.get("observedGeneration", 0) >= one["metadata"]["generation"]
    counts = (status.get("readyReplicas"), status.get("updatedReplicas"), status.get("replicas"))
    return seen and counts == (wanted, wanted, wanted)


def _is_bound(claim: Object) -> bool:
    return bool(claim) and claim["status"].get("phase") == "Bound"


def _containers(one: Object) -> list[Object]:
    statuses: list[Object] = one["status"].get("containerStatuses", [])
    return statuses


def _restarts(pods: list[Object]) -> int:
    return max((one["restartCount"] for each in pods for one in _containers(each)), default=0)
