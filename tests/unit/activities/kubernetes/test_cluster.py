"""What a cluster is asked, and what becomes of its answers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from temporal_plans.activities.kubernetes.cluster import Cluster, Object, connected
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.objects import apply_all, delete_all, health_of_all
from temporal_plans.domain.packages.health import Health, HealthState
from unit.activities.kubernetes.fake_server import GROUP, FakeServer, serving

PATH = "/api/v1/namespaces/here/configmaps"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[FakeServer, Cluster]]:
    async with serving(tmp_path) as (server, kubeconfig), connected(kubeconfig) as cluster:
        yield server, cluster


@pytest.fixture
def server(served: tuple[FakeServer, Cluster]) -> FakeServer:
    return served[0]


@pytest.fixture
def cluster(served: tuple[FakeServer, Cluster]) -> Cluster:
    return served[1]


def settings(name: str = "settings") -> Object:
    metadata = {"name": name, "namespace": "here"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}}


def thing() -> Object:
    metadata = {"name": "it", "namespace": "here"}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": metadata}


async def test_apply_is_one_request_of_one_manager(server: FakeServer, cluster: Cluster) -> None:
    assert await cluster.apply(settings()) == settings()
    asked = f"PATCH {PATH}/settings?fieldManager=temporal-plans&force=True"
    assert server.requests == [asked]
    assert server.objects == {f"{PATH}/settings": settings()}


async def test_a_dry_run_says_so(server: FakeServer, cluster: Cluster) -> None:
    assert await cluster.apply(settings(), dry_run=True) == settings()
    assert server.objects == {}


async def test_what_is_not_there_is_none_and_not_deleted(cluster: Cluster) -> None:
    for absent in (settings(), thing()):
        assert await cluster.get(absent) is None
        assert not await cluster.delete(absent)


async def test_a_deletion_is_in_the_foreground(server: FakeServer, cluster: Cluster) -> None:
    await cluster.apply(settings())
    assert await cluster.delete(settings())
    assert server.requests[-1] == f"DELETE {PATH}/settings"
    assert server.deletions[-1]["propagationPolicy"] == "Foreground"
    assert await cluster.get(settings()) is None


async def test_a_refusal_is_an_error(server: FakeServer, cluster: Cluster) -> None:
    server.refusals["settings"] = (422, "Invalid", "data: too large")
    with pytest.raises(ClusterError, match=r"^ConfigMap settings: data: too large \(422\)$"):
        await cluster.apply(settings())
    server.refusals["settings"] = (503, "ServiceUnavailable", "try later")
    for asked in (cluster.get, cluster.delete):
        with pytest.raises(ClusterError, match="try later") as refused:
            await asked(settings())
        assert refused.value.passing


async def test_a_kind_is_looked_up_again(server: FakeServer, cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="Thing it: the cluster has no such kind"):
        await cluster.apply(thing())
    server.things_are_defined = True
    assert await cluster.apply(thing()) == thing()


@pytest.mark.parametrize("name", ["..", ".", "../../default", "a?dryRun=All", "%2e%2e"])
@pytest.mark.parametrize("field", ["name", "namespace"])
async def test_a_name_that_would_change_the_path_is_sent_in_no_request(
    server: FakeServer, cluster: Cluster, name: str, field: str
) -> None:
    hostile = settings()
    hostile["metadata"][field] = name
    assert await cluster.get(hostile) is None
    assert not await cluster.delete(hostile)
    for refused in (cluster.apply(hostile), cluster.create(hostile), cluster.merge(hostile, {})):
        with pytest.raises(ClusterError, match="a name must not"):
            await refused
    assert server.requests == []


@pytest.mark.parametrize("lost", ["/namespaces/", "/"])
async def test_an_object_is_not_gone_because_a_proxy_knows_no_path(
    server: FakeServer, cluster: Cluster, lost: str
) -> None:
    await cluster.apply(settings())
    server.lost_paths = lost
    for asked in (cluster.get, cluster.delete, cluster.apply):
        with pytest.raises(ClusterError, match="can't be reached: something before it") as refused:
            await asked(settings())
        assert refused.value.passing
    server.lost_paths = ""
    assert await cluster.get(settings()) is not None


async def test_a_kind_whose_definition_was_deleted_is_unknown_again(
    server: FakeServer, cluster: Cluster
) -> None:
    server.things_are_defined = True
    await cluster.apply(thing())
    server.things_are_defined, server.lost_paths = False, f"/{GROUP}/"
    assert await cluster.get(thing()) is None
    assert await cluster.namespaced(thing()) is None
    with pytest.raises(ClusterError, match="the cluster has no such kind"):
        await cluster.apply(thing())


async def test_a_connection_through_a_proxy_that_knows_no_path(tmp_path: Path) -> None:
    async with serving(tmp_path) as (server, kubeconfig):
        server.lost_paths = "/"
        with pytest.raises(ClusterError, match="something before it answered") as refused:
            async with connected(kubeconfig):
                pass
        assert refused.value.passing


async def test_objects_are_applied_in_order_up_to_a_refusal(
    server: FakeServer, cluster: Cluster
) -> None:
    server.refusals["b"] = (403, "Forbidden", "no")
    with pytest.raises(ClusterError, match="ConfigMap b: no"):
        await apply_all(cluster, [settings(name) for name in "abc"])
    assert list(server.objects) == [f"{PATH}/a"]


async def test_what_is_left_after_a_deletion_is_named(server: FakeServer, cluster: Cluster) -> None:
    await apply_all(cluster, [settings("a"), settings("b")])
    assert await delete_all(cluster, [settings("a"), settings("b"), thing()]) == []
    assert server.objects == {}


def test_what_failed_comes_before_what_is_not_ready() -> None:
    pending: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    failed: Object = {**pending, "metadata": {"name": "b"}, "status": {"phase": "Failed"}}
    assert health_of_all([settings()]) == Health(state=HealthState.HEALTHY)
    assert health_of_all([settings(), pending]).reason == "Pod a: the pod is Pending and not ready"
    assert health_of_all([pending, failed]) == Health(
        state=HealthState.FAILED, reason="Pod b: the pod failed"
    )
