"""What every content store does: a class of tests for stores of any kind to inherit."""

import asyncio
from hashlib import sha256
from random import Random

import pytest

from temporal_plans.activities.contents.errors import (
    ContentMissing,
    ContentTooLarge,
    InvalidDigest,
)
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.messages.contents import CONTENT_LIMIT, PART_SIZE


def noise(size: int, seed: int = 0) -> bytes:
    """Return bytes that can't be compressed."""
    return Random(f"{size} {seed}").randbytes(size)


class ContentStoreSuite:
    """Tests with the fixture ``store``, which the class of a store has."""

    @staticmethod
    def digest(data: bytes) -> str:
        return sha256(data).hexdigest()

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(b"", id="empty"),
            pytest.param(b"\x00\xff\r\n", id="bytes"),
            pytest.param(b"name: web\n" * 300_000, id="text-of-3MB"),
            pytest.param(noise(PART_SIZE), id="one-part"),
            pytest.param(noise(PART_SIZE + 1), id="two-parts"),
            pytest.param(noise(3_000_000), id="noise-of-3MB"),
            pytest.param(noise(CONTENT_LIMIT), id="the-largest"),
        ],
    )
    async def test_what_was_put_is_read(self, store: ContentStore, data: bytes) -> None:
        digest = await store.put(data)
        assert digest == sha256(data).hexdigest()
        assert await store.get(digest) == data
        assert await store.put(data) == digest
        assert await store.get(digest) == data

    async def test_one_byte_too_many(self, store: ContentStore) -> None:
        data = bytes(CONTENT_LIMIT + 1)
        with pytest.raises(ContentTooLarge, match=r"more than 10,485,760 bytes.*smaller"):
            await store.put(data)
        with pytest.raises(ContentMissing):
            await store.get(sha256(data).hexdigest())

    async def test_two_puts_at_once(self, store: ContentStore) -> None:
        data = noise(2 * PART_SIZE, seed=1)
        first, second = await asyncio.gather(store.put(data), store.put(data))
        assert first == second
        assert await store.get(first) == data

    async def test_a_missing_content(self, store: ContentStore) -> None:
        digest = sha256(b"never put").hexdigest()
        with pytest.raises(ContentMissing, match=rf"content: is not in .*{digest}.*put it again"):
            await store.get(digest)

    @pytest.mark.parametrize(
        "digest", ["", "../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n"]
    )
    async def test_what_is_no_digest(self, store: ContentStore, digest: str) -> None:
        for call in (store.get(digest), store.hold(digest, "x"), store.release(digest, "x")):
            with pytest.raises(InvalidDigest, match="64 hexadecimal digits"):
                await call

    async def test_holds_may_be_repeated(self, store: ContentStore) -> None:
        digest = await store.put(b"held")
        for _ in range(2):
            await store.hold(digest, "service/web")
        assert await store.get(digest) == b"held"
        for _ in range(2):
            await store.release(digest, "service/web")
        await store.release(sha256(b"never held").hexdigest(), "service/web")
        assert await store.get(digest) == b"held"
