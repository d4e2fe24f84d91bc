"""Commands in pods: what is asked, and what becomes of the answers."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from temporal_plans.activities.kubernetes.cluster import Cluster, connected
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.pod_command import (
    Container,
    Executed,
    OutputLimitError,
)
from unit.activities.kubernetes.fake_server import FakeServer, serving

MAKER = Container("here", "maker", "waiter")
SUCCESS: dict[str, Any] = {"status": "Success"}


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


def out(content: bytes) -> bytes:
    return b"\1" + content


def err(content: bytes) -> bytes:
    return b"\2" + content


def ended(status: Any) -> bytes:
    return b"\3" + json.dumps(status).encode()


def failure(message: str, *causes: Any) -> dict[str, Any]:
    return {"status": "Failure", "message": message, "details": {"causes": list(causes)}}


async def test_what_a_command_prints_is_bytes(server: FakeServer, cluster: Cluster) -> None:
    server.printed = [out(b""), out(b"\x00\xff"), err(b"secret"), out(b"\n"), ended(SUCCESS)]
    executed = await cluster.execute(MAKER, ["stat", "-c", "%s", "/a b"], limit=3)
    assert executed == Executed(b"\x00\xff\n", 0)
    (asked,) = server.requests
    assert asked == (
        "GET /api/v1/namespaces/here/pods/maker/exec"
        "?command=stat&command=-c&command=%25s&command=/a+b&container=waiter&stdout=True"
    )


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param(SUCCESS, 0, id="success"),
        pytest.param(failure("no", {"reason": "ExitCode", "message": "7"}), 7, id="cause"),
        pytest.param(
            failure("exit status 3", {"reason": "Other", "message": "9"}), 3, id="text-only"
        ),
        pytest.param(
            failure("command terminated: exit code 126"), 126, id="another-text"
        ),
    ],
)  # fmt: skip
async def test_the_exit_code(server: FakeServer, cluster: Cluster, status: Any, code: int) -> None:
    server.printed = [ended(status)]
    assert (await cluster.execute(MAKER, ["stat"], limit=10)).code == code


@pytest.mark.parametrize(
    ("printed", "text"),
    [
        pytest.param([out(b"half")], "the connection ended before the command", id="cut"),
        pytest.param([b"\3{"], "the connection ended before the command", id="half-a-status"),
        pytest.param(["text"], "the connection ended before the command", id="text"),
        pytest.param([b""], "the connection ended before the command", id="nothing"),
        pytest.param(
            [ended(failure("container not found"))],
            "the command was not executed: container not found",
            id="no-container",
        ),
        pytest.param(
            [ended(failure("x", {"reason": "ExitCode", "message": "nonsense"}, "y"))],
            "the command was not executed: x",
            id="no-code",
        ),
        pytest.param([ended([1])], "the command was not executed: no reason given", id="no-object"),
        pytest.param([b"\3" + b"x" * 70_000], "the answer is no status", id="endless-status"),
    ],
)
async def test_a_command_that_was_not_executed_may_be_tried_again(
    server: FakeServer, cluster: Cluster, printed: list[bytes | str | None], text: str
) -> None:
    server.printed = printed
    with pytest.raises(ClusterError, match=f"^Pod maker: {text}$") as refused:
        await cluster.execute(MAKER, ["stat"], limit=10)
    assert refused.value.passing


async def test_a_command_that_prints_too_much_is_ended(
    server: FakeServer, cluster: Cluster
) -> None:
    server.printed = [out(b"12345"), out(b"6"), None]
    with pytest.raises(OutputLimitError, match="prints more than 5 bytes") as refused:
        await cluster.execute(MAKER, ["cat"], limit=5)
    assert not refused.value.passing


async def test_a_command_has_a_time(server: FakeServer, cluster: Cluster) -> None:
    server.printed = [out(b"1"), None]
    with pytest.raises(ClusterError, match="did not answer in time") as refused:
        await cluster.execute(MAKER, ["cat"], limit=5, timeout=0.2)
    assert refused.value.passing


@pytest.mark.parametrize(("status", "passing"), [(403, False), (404, True), (500, True)])
async def test_a_refused_command(
    server: FakeServer, cluster: Cluster, status: int, passing: bool
) -> None:
    server.refusals["exec"] = (status, "No", "no")
    with pytest.raises(ClusterError, match=rf"was refused \({status}\)") as refused:
        await cluster.execute(MAKER, ["cat"], limit=5)
    assert refused.value.passing is passing
    assert refused.value.status == status
