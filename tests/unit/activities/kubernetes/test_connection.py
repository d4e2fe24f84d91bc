"""The connection that a process keeps to its cluster."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Object, connected
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.kubernetes.errors import ClusterError
from unit.activities.kubernetes.fake_server import FakeServer, serving

SETTINGS: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "here"},
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[FakeServer, Path]]:
    async with serving(tmp_path) as served:
        yield served


async def test_a_connection_is_opened_once(served: tuple[FakeServer, Path]) -> None:
    async with ClusterConnection(ClusterAccess("prod", served[1])) as connection:
        async with connection.use() as first, connection.use() as second:
            assert first is second
        async with connection.use() as third:
            assert third is first
            assert await third.namespaced(SETTINGS) is True


async def test_credentials_that_are_refused_are_read_again(
    served: tuple[FakeServer, Path],
) -> None:
    server, kubeconfig = served
    async with ClusterConnection(ClusterAccess("prod", kubeconfig)) as connection:
        async with connection.use() as first, connection.use() as other:
            server.refusals["settings"] = (401, "Unauthorized", "Unauthorized")
            with pytest.raises(ClusterError, match="Unauthorized") as refused:
                await first.get(SETTINGS)
            assert refused.value.passing
            server.refusals.clear()
            async with connection.use() as second:
                assert second is not first
            assert await other.get(SETTINGS) is None, "it is used until its use ends"
        with pytest.raises(RuntimeError, match="closed"):
            await first.get(SETTINGS)
        async with connection.use() as third:
            assert third is second


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{}", "cluster prod: credentials: can't be used: "),
        (None, "cluster prod: credentials: can't be used: "),
    ],
)
async def test_credentials_may_be_wrong(tmp_path: Path, content: str | None, problem: str) -> None:
    kubeconfig = tmp_path / "wrong"
    if content is not None:
        kubeconfig.write_text(content)
    async with ClusterConnection(ClusterAccess("prod", kubeconfig)) as connection:
        with pytest.raises(ClusterError, match=problem) as refused:
            async with connection.use():
                pass
        assert refused.value.passing


async def test_a_server_that_is_down_may_come_back(
    served: tuple[FakeServer, Path], tmp_path: Path
) -> None:
    text = served[1].read_text()
    nowhere = tmp_path / "nowhere"
    nowhere.write_text(text.replace("127.0.0.1", "127.0.0.1:1/#"))
    async with ClusterConnection(ClusterAccess("prod", nowhere)) as connection:
        with pytest.raises(ClusterError, match="cluster prod: ") as refused:
            async with connection.use():
                pass
        assert refused.value.passing
        nowhere.write_text(text)
        async with connection.use() as cluster:
            assert await cluster.get(SETTINGS) is None


async def test_in_a_cluster_the_service_account_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    async with ClusterConnection(ClusterAccess("prod")) as connection:
        with pytest.raises(ClusterError, match="Service token file does not exist"):
            async with connection.use():
                pass


async def test_a_server_that_does_not_answer_is_not_waited_for(
    served: tuple[FakeServer, Path],
) -> None:
    served[0].stalls = True
    with pytest.raises(ClusterError, match="cluster: the API server did not answer in time"):
        async with connected(served[1], timeout=0.2):
            pass
