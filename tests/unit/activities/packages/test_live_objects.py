"""What is there already, asked for with few requests."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from temporal_plans.activities.kubernetes.cluster import Cluster, Object, connected
from temporal_plans.activities.packages.live_objects import live_metadata
from temporal_plans.domain.packages.inventory import ObjectRef
from unit.activities.kubernetes.fake_server import FakeServer, serving

FOLDER = "/api/v1/namespaces/here/configmaps"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[FakeServer, Cluster]]:
    async with serving(tmp_path) as (server, kubeconfig), connected(kubeconfig) as cluster:
        yield server, cluster


def settings(number: int) -> Object:
    metadata = {"name": f"settings-{number}", "namespace": "here"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


async def names_of(cluster: Cluster, count: int, **options: int) -> list[str]:
    """The names of what is there, of so many objects."""
    wanted = [settings(number) for number in range(count)]
    found = await live_metadata(cluster, wanted, **options)
    assert set(found) == {ObjectRef.of(one).key for one in wanted}
    return [live["metadata"]["name"] for live in found.values() if live is not None]


async def test_few_objects_are_asked_for_one_by_one(served: tuple[FakeServer, Cluster]) -> None:
    server, cluster = served
    server.objects[f"{FOLDER}/settings-1"] = settings(1)
    assert await names_of(cluster, 3) == ["settings-1"]
    assert len(server.requests) == 3


async def test_many_objects_are_listed(served: tuple[FakeServer, Cluster]) -> None:
    server, cluster = served
    server.objects |= {f"{FOLDER}/settings-{number}": settings(number) for number in (1, 7, 30)}
    assert await names_of(cluster, 20) == ["settings-1", "settings-7"]
    assert server.requests == [f"GET {FOLDER}?limit=1000"]


async def test_what_a_long_list_lacks_is_asked_for(
    served: tuple[FakeServer, Cluster],
) -> None:
    server, cluster = served
    server.objects |= {f"{FOLDER}/settings-{number}": settings(number) for number in (30, 1, 7)}
    assert sorted(await names_of(cluster, 8, limit=2)) == ["settings-1", "settings-7"]
    assert len(server.requests) == 1 + 7


async def test_a_role_may_permit_no_lists(served: tuple[FakeServer, Cluster]) -> None:
    server, cluster = served
    server.refusals["configmaps"] = (403, "Forbidden", "no lists")
    server.objects[f"{FOLDER}/settings-1"] = settings(1)
    assert await names_of(cluster, 8) == ["settings-1"]
