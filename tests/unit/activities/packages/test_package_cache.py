"""Packages of a worker."""

import asyncio

import pytest

from builders.packages import package_files
from temporal_plans.activities.packages.package_cache import PackageCache
from temporal_plans.domain.values.refusal import RefusedError, SpecError
from temporal_plans.loading.packages.archive import write_archive


class Contents:
    def __init__(self, **kept: bytes) -> None:
        self.kept = kept
        self.asked: list[str] = []

    async def get(self, digest: str) -> bytes:
        self.asked.append(digest)
        return self.kept[digest]


async def test_a_package_is_read_once() -> None:
    contents = Contents(a=write_archive(package_files()))
    cache = PackageCache(contents)
    first = await cache.get("a")
    assert first.name == "web"
    assert await cache.get("a") is first
    assert contents.asked == ["a"]


async def test_the_packages_used_last_are_kept() -> None:
    data = write_archive(package_files())
    contents = Contents(a=data, b=data, c=data)
    cache = PackageCache(contents, limit=2 * len(data))
    for digest in "abacab":
        await cache.get(digest)
    assert contents.asked == [*"abcb"]


async def test_a_package_above_the_limit_is_kept_alone() -> None:
    data = write_archive(package_files())
    contents = Contents(a=data, b=data)
    cache = PackageCache(contents, limit=1)
    for digest in "aabba":
        await cache.get(digest)
    assert contents.asked == [*"aba"]


async def test_calls_at_once_count_a_package_once() -> None:
    data = write_archive(package_files())
    contents = Contents(a=data, b=data)
    cache = PackageCache(contents, limit=2 * len(data))
    await asyncio.gather(*(cache.get("a") for _ in range(3)))
    await cache.get("b")
    contents.asked.clear()
    await cache.get("a")
    assert contents.asked == []


@pytest.mark.parametrize("data", [b"", b"none", write_archive({"x": b""})])
async def test_what_is_no_package_is_refused(data: bytes) -> None:
    with pytest.raises(RefusedError):
        await PackageCache(Contents(a=data)).get("a")


async def test_a_package_with_faults_is_refused() -> None:
    files = package_files(operator="name: x\ntasks: 5\n")
    with pytest.raises(SpecError, match="tasks"):
        await PackageCache(Contents(a=write_archive(files))).get("a")
