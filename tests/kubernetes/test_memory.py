"""How much memory a worker needs for many installed packages."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kubernetes.control_plane import ControlPlane
from kubernetes.installed import Installed, verified
from kubernetes.namespaces import Namespace
from kubernetes.place import Place, running_place
from kubernetes.test_package_lives import STORE
from process_memory import peak_memory

COUNT = 50
AT_ONCE = 4
MEMORY_LIMIT = 300_000_000
"""Bytes. A worker without instances takes 185 MB, and each of these less than half of one."""


@pytest.fixture
async def own_place(control_plane: ControlPlane) -> AsyncIterator[Place]:
    """A worker that has done nothing else."""
    async with running_place(control_plane) as place:
        yield place


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_a_hundred_instances_stay_below_the_limit(
    own_place: Place, namespace: Namespace
) -> None:
    """Fifty packages with one nested in each."""
    own_place.make_files(("/generated/password",), "made once")
    client, package = await own_place.client(), await verified(STORE)
    turns = asyncio.Semaphore(AT_ONCE)

    async def install(number: int) -> None:
        async with turns:
            await Installed(own_place, f"it-{number}", namespace.name).deployed(package)

    await asyncio.gather(*map(install, range(COUNT)))
    assert len(await client.services()) == 2 * COUNT
    pid = own_place.worker.pid
    assert pid is not None
    assert peak_memory(pid) < MEMORY_LIMIT
