"""Files read from pods."""

import io
import tarfile
from collections.abc import Sequence

import pytest

from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.pod_command import Container, Executed
from temporal_plans.activities.kubernetes.pod_file import read_file

WAITER = Container("here", "maker", "waiter")


class Scripted:
    """Answers ``stat`` and ``tar`` with what a test says."""

    def __init__(self, stat: bytes, tar: bytes = b"", code: int = 0) -> None:
        self.answers = {"stat": stat, "tar": tar}
        self.code = code
        self.commands: list[tuple[Sequence[str], int]] = []

    async def execute(
        self, container: Container, command: Sequence[str], *, limit: int
    ) -> Executed:
        assert container == WAITER
        self.commands.append((command, limit))
        return Executed(self.answers[command[0]], self.code)


def packed(content: bytes, kind: bytes = tarfile.REGTYPE) -> bytes:
    stream, entry = io.BytesIO(), tarfile.TarInfo("a")
    entry.size, entry.type = len(content), kind
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


async def test_a_file_is_read_by_its_size_and_its_archive() -> None:
    cluster = Scripted(b"3\n", packed(b"\x00\xffa"))
    assert await read_file(cluster, WAITER, "/made/-rf", limit=3) == b"\x00\xffa"
    assert cluster.commands == [
        (["stat", "-c", "%s", "/made/-rf"], 100),
        (["tar", "cf", "-", "-C", "/made", "./-rf"], 3 + 64 * 1024),
    ]


@pytest.mark.parametrize(
    ("cluster", "problem", "passing"),
    [
        pytest.param(
            Scripted(b"secret", code=1),
            "stat ended with exit code 1: is the file there?",
            False,
            id="not-there",
        ),
        pytest.param(Scripted(b"secret"), "stat does not say its size", False, id="no-size"),
        pytest.param(Scripted(b"-1"), "stat does not say its size", False, id="negative"),
        pytest.param(Scripted(b"9" * 30), "stat does not say its size", False, id="enormous"),
        pytest.param(Scripted(b"11"), "it has 11 bytes, at most 10 fit", False, id="too-large"),
        pytest.param(Scripted(b"3", b""), "the archive can't be read", True, id="nothing"),
        pytest.param(
            Scripted(b"3", packed(b"secret")),
            "it has 6 bytes, and had 3 a moment ago",
            True,
            id="changed",
        ),
        pytest.param(
            Scripted(b"0", packed(b"", tarfile.SYMTYPE)), "it is a link", False, id="link"
        ),
    ],
)
async def test_a_file_is_refused_without_its_content(
    cluster: Scripted, problem: str, passing: bool
) -> None:
    with pytest.raises(ClusterError) as refused:
        await read_file(cluster, WAITER, "/made/a", limit=10)
    assert str(refused.value) == f"Pod maker: /made/a can't be read: {problem}"
    assert refused.value.passing is passing
