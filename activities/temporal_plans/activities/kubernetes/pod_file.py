"""Files in pods, read by ``stat`` and ``tar`` in a container."""

import posixpath
from collections.abc import Sequence
from typing import Protocol

from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.packed_file import (
    PACKING_LIMIT,
    PackedFileError,
    TornFileError,
    packed_file,
)
from temporal_plans.activities.kubernetes.pod_command import Container, Executed

_SIZE_LIMIT = 100
"""Bytes that ``stat`` may print."""


class Executing(Protocol):
    """What runs commands in pods: a ``Cluster``."""

    async def execute(
        self, container: Container, command: Sequence[str], *, limit: int
    ) -> Executed:
        """Run a command to its end."""
        ...


async def read_file(cluster: Executing, container: Container, path: str, *, limit: int) -> bytes:
    """Return the content of an ordinary file of at most ``limit`` bytes.

    Raises ClusterError; no text of it has anything of the content.
    """
    size = _size(await _printed(cluster, container, path, ["stat", "-c", "%s", path], _SIZE_LIMIT))
    if size is None:
        raise _error(container, path, "stat does not say its size", passing=False)
    if size > limit:
        raise _error(container, path, f"it has {size} bytes, at most {limit} fit", passing=False)
    folder, name = posixpath.split(path)
    command = ["tar", "cf", "-", "-C", folder, f"./{name}"]
    stream = await _printed(cluster, container, path, command, limit + PACKING_LIMIT)
    try:
        return packed_file(stream, size)
    except PackedFileError as error:
        raise _error(container, path, str(error), passing=False) from error
    except TornFileError as error:
        raise _error(container, path, str(error), passing=True) from error


async def _printed(
    cluster: Executing, container: Container, path: str, command: Sequence[str], limit: int
) -> bytes:
    executed = await cluster.execute(container, command, limit=limit)
    if executed.code:
        problem = f"{command[0]} ended with exit code {executed.code}: is the file there?"
        raise _error(container, path, problem, passing=False)
    return executed.out


def _size(printed: bytes) -> int | None:
    digits = printed.strip()
    return int(digits) if digits.isdigit() and len(digits) < 20 else None


def _error(container: Container, path: str, problem: str, *, passing: bool) -> ClusterError:
    return ClusterError(f"{container}: {path} can't be read: {problem}", passing=passing)
