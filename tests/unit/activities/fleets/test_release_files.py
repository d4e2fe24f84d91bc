"""The files of a release are read once, however many entities are to have it."""

import asyncio
from typing import Any, cast

from builders.contents import MemoryContents
from temporal_plans.activities.fleets.releases import RELEASES_KEPT, Releases
from temporal_plans.messages.fleets.payloads import ReleasePayload


def payload(number: int) -> ReleasePayload:
    return ReleasePayload(files={"install.yml": f"number {number}"})


async def stored(count: int) -> tuple[Releases, MemoryContents]:
    contents = MemoryContents()
    for number in range(count):
        await contents.put(payload(number).data)
    return Releases(cast(Any, None), contents), contents


async def test_the_files_of_a_release_are_read_once() -> None:
    known, contents = await stored(1)
    digest = payload(0).digest
    for _ in range(3):
        found = await asyncio.gather(*(known.files(digest) for _ in range(100)))
        assert found == [payload(0)] * 100
    assert contents.reads == [digest]


async def test_the_files_of_few_releases_are_kept() -> None:
    known, contents = await stored(RELEASES_KEPT + 1)
    first = payload(0).digest
    for number in range(RELEASES_KEPT):
        await known.files(payload(number).digest)
    await known.files(first)  # used again: another one is the oldest
    await known.files(payload(RELEASES_KEPT).digest)
    await known.files(first)
    assert contents.reads.count(first) == 1
    await known.files(payload(1).digest)
    assert contents.reads.count(payload(1).digest) == 2
