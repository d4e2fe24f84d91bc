"""Objects that the product applies, looks at and deletes, on a real API server."""

import pytest

from kubernetes.control_plane import ControlPlane
from kubernetes.manifests import DEFINITION, config_map, deployment, job, stateful_set
from kubernetes.namespaces import LONG, Namespace
from pauses import until
from temporal_plans.activities.kubernetes.cluster import FIELD_MANAGER, Cluster, Object, connected
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.objects import apply_all, delete_all, health_of_all
from temporal_plans.domain.packages.health import Health, HealthState
from temporal_plans.worker.control_plane.stages import PodFate

HEALTHY = Health(state=HealthState.HEALTHY)


def placed(namespace: Namespace, manifest: Object) -> Object:
    return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace.name}}


async def until_health(own: Cluster, manifests: list[Object], wanted: HealthState) -> Health:
    async def look() -> Health:
        return health_of_all([await own.get(one) or one for one in manifests])

    return await until(look, lambda found: found.state is wanted, patience=LONG)


async def test_what_is_applied_becomes_healthy(own: Cluster, namespace: Namespace) -> None:
    manifests = [
        placed(namespace, made)
        for made in (
            config_map("settings", key="value"),
            deployment("web", replicas=2),
            stateful_set("db", replicas=2, storage="1Gi"),
            job("once"),
        )
    ]
    applied = await apply_all(own, manifests)
    assert health_of_all(applied).state is HealthState.UNHEALTHY, "nothing can be ready yet"
    assert await until_health(own, manifests, HealthState.HEALTHY) == HEALTHY
    managers = {one["manager"] for one in applied[0]["metadata"]["managedFields"]}
    assert managers == {FIELD_MANAGER}


async def test_a_crashing_pod_is_the_reason(own: Cluster, namespace: Namespace) -> None:
    crashing = placed(namespace, deployment("bad", fate=PodFate.CRASH))
    await apply_all(own, [crashing])
    found = await until_health(own, [crashing], HealthState.UNHEALTHY)
    assert found.reason.startswith("Deployment bad: ")
    pods = await namespace.until_pods("app=bad", lambda pods: len(pods) == 1)
    reason = "Pod {}: the pod is Running and not ready: main: CrashLoopBackOff"
    pod = await until_health(own, pods, HealthState.UNHEALTHY)
    await until(lambda: _health_reason(own, pods[0]), lambda text: "CrashLoopBackOff" in text)
    pod = health_of_all([await own.get(pods[0]) or {}])
    assert pod.reason == reason.format(pods[0]["metadata"]["name"])


async def _health_reason(own: Cluster, manifest: Object) -> str:
    return health_of_all([await own.get(manifest) or manifest]).reason


async def test_a_job_that_failed_is_failed(own: Cluster, namespace: Namespace) -> None:
    failing = placed(namespace, job("once", fate=PodFate.FAIL))
    await apply_all(own, [failing])
    found = await until_health(own, [failing], HealthState.FAILED)
    assert found.reason.startswith("Job once: the Job failed: ")


async def test_a_field_that_is_no_longer_sent_is_removed(
    own: Cluster, namespace: Namespace
) -> None:
    await own.apply(placed(namespace, config_map("settings", kept="1", gone="2")))
    await namespace.cluster.apply(placed(namespace, config_map("settings", others="3")))
    after = await own.apply(placed(namespace, config_map("settings", kept="1")))
    assert after["data"] == {"kept": "1", "others": "3"}


async def test_a_dry_run_changes_nothing(own: Cluster, namespace: Namespace) -> None:
    manifest = placed(namespace, config_map("settings", key="value"))
    assert (await own.apply(manifest, dry_run=True))["data"] == {"key": "value"}
    assert await own.get(manifest) is None


async def test_what_is_deleted_is_gone_with_what_it_owns(
    own: Cluster, namespace: Namespace
) -> None:
    manifests = [placed(namespace, deployment("web")), placed(namespace, config_map("settings"))]
    await apply_all(own, manifests)
    await until_health(own, manifests, HealthState.HEALTHY)

    async def left() -> list[str]:
        return await delete_all(own, [*manifests, _thing(namespace)])

    await until(left, lambda names: names == [], patience=LONG)
    assert await namespace.cluster.list("v1", "Pod", namespace.name) == []


def _thing(namespace: Namespace) -> Object:
    """An object of a kind that the cluster does not have."""
    manifest = {"apiVersion": "tests.example/v1", "kind": "Thing", "metadata": {"name": "it"}}
    return placed(namespace, manifest)


async def test_a_kind_is_known_once_it_is_defined(own: Cluster, namespace: Namespace) -> None:
    with pytest.raises(ClusterError, match="Thing it: the cluster has no such kind") as refused:
        await own.apply(_thing(namespace))
    assert not refused.value.passing
    try:
        await apply_all(own, [DEFINITION])
        await until_health(own, [DEFINITION], HealthState.HEALTHY)
        # The API server takes a moment more until it serves what is established.
        await until(lambda: own.namespaced(_thing(namespace)), lambda found: found is not None)
        applied = await own.apply(_thing(namespace))
        assert health_of_all([applied]) == HEALTHY
    finally:
        await until(lambda: delete_all(own, [DEFINITION]), lambda names: names == [])


async def test_an_invalid_object_is_refused_for_good(own: Cluster, namespace: Namespace) -> None:
    bad = placed(namespace, deployment("web", replicas=-1))
    with pytest.raises(
        ClusterError, match=r"Deployment web: .*spec\.replicas.* \(422\)"
    ) as refused:
        await own.apply(bad)
    assert not refused.value.passing


async def test_a_missing_namespace_is_refused_for_good(own: Cluster) -> None:
    lost = {**config_map("it"), "metadata": {"name": "it", "namespace": "none"}}
    with pytest.raises(ClusterError, match=r'namespaces "none" not found \(404\)') as refused:
        await own.apply(lost)
    assert not refused.value.passing


async def test_a_full_quota_may_be_raised(own: Cluster, namespace: Namespace) -> None:
    quota: Object = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": {"hard": {"count/secrets": "0"}},
    }
    await namespace.apply(quota)
    await namespace.until("v1", "ResourceQuota", "full", lambda one: one.get("status"))
    secret = placed(
        namespace, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "secret"}}
    )
    with pytest.raises(ClusterError, match="exceeded quota") as refused:
        await own.apply(secret)
    assert refused.value.passing


async def test_a_user_without_a_role_is_refused_for_good(
    control_plane: ControlPlane, namespace: Namespace
) -> None:
    async with connected(control_plane.credentials.kubeconfig("nobody")) as cluster:
        with pytest.raises(ClusterError, match=r'User "nobody" cannot .* \(403\)') as refused:
            await cluster.apply(placed(namespace, config_map("settings")))
    assert not refused.value.passing


async def test_a_server_that_is_down_may_come_back(
    control_plane: ControlPlane, own: Cluster, namespace: Namespace
) -> None:
    manifest = placed(namespace, config_map("settings"))
    await own.apply(manifest)
    await control_plane.server.kill()
    try:
        with pytest.raises(ClusterError, match="ConfigMap settings: the API server") as refused:
            await own.apply(manifest)
        assert refused.value.passing
    finally:
        await control_plane.start_server()
    await own.apply(manifest)
