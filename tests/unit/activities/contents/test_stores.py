"""The content stores that need no server, and the choice of one."""

import gzip
import sys
from hashlib import sha256
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest
from temporalio.client import Client
from temporalio.worker import WorkerConfig

from builders.contents import MemoryContents
from content_suite import ContentStoreSuite
from temporal_plans.activities.contents.cached_contents import CachedContents
from temporal_plans.activities.contents.choice import VARIABLE, ContentStoreError, content_store
from temporal_plans.activities.contents.errors import (
    ContentDamaged,
    ContentMissing,
    ContentUnavailable,
)
from temporal_plans.activities.contents.file_contents import FileContents
from temporal_plans.activities.contents.store import ContentStore
from temporal_plans.activities.contents.temporal_contents import TemporalContents
from temporal_plans.messages.contents import CONTENT_LIMIT
from temporal_plans.worker.plugin import PlansPlugin

DATA = b"some bytes"
DIGEST = sha256(DATA).hexdigest()
NO_CLIENT = cast(Client, Mock(spec=Client))


class TestMemory(ContentStoreSuite):
    @pytest.fixture
    def store(self) -> ContentStore:
        return MemoryContents()


class TestCached(ContentStoreSuite):
    @pytest.fixture
    def store(self) -> ContentStore:
        return CachedContents(MemoryContents(), limit=1_000_000)


class TestFolder(ContentStoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ContentStore:
        return FileContents(str(tmp_path / "contents"))


class TestFileSystemInMemory(ContentStoreSuite):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ContentStore:
        return FileContents(f"memory:/{tmp_path}")


class TestFiles:
    async def test_a_file_is_named_by_its_digest_and_compressed(self, tmp_path: Path) -> None:
        await FileContents(tmp_path.as_uri()).put(DATA)
        assert [path.name for path in tmp_path.iterdir()] == [DIGEST]
        assert gzip.decompress((tmp_path / DIGEST).read_bytes()) == DATA

    @pytest.mark.parametrize(
        ("written", "why"),
        [
            pytest.param(b"", "cut off", id="empty"),
            pytest.param(gzip.compress(DATA)[:-9], "cut off", id="half"),
            pytest.param(b"no gzip", "can't be expanded", id="another-format"),
            pytest.param(gzip.compress(b"other"), "have the digest", id="other-bytes"),
            pytest.param(gzip.compress(bytes(CONTENT_LIMIT + 1)), "more than", id="a-bomb"),
        ],
    )
    async def test_a_damaged_file(self, tmp_path: Path, written: bytes, why: str) -> None:
        store = FileContents(str(tmp_path))
        (tmp_path / DIGEST).write_bytes(written)
        with pytest.raises(ContentDamaged, match=rf"is damaged.*{why}.*delete {tmp_path}/{DIGEST}"):
            await store.get(DIGEST)
        await store.put(DATA)
        assert await store.get(DIGEST) == DATA

    async def test_a_put_that_fails_leaves_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = FileContents(str(tmp_path))

        def fails(*_: object) -> None:
            raise OSError("the disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("fsspec.implementations.local.LocalFileSystem.mv", fails)
            with pytest.raises(ContentUnavailable, match=f"{tmp_path}.*the disk is full.*retry"):
                await store.put(DATA)
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(ContentMissing):
            await store.get(DIGEST)

    async def test_a_place_that_can_not_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(ContentUnavailable, match="retry"):
            await FileContents(str(tmp_path / "file")).put(DATA)


class TestCache:
    async def test_what_was_read_is_read_once(self) -> None:
        store = MemoryContents({DIGEST: DATA})
        cached = CachedContents(store)
        assert [await cached.get(DIGEST) for _ in range(3)] == [DATA] * 3
        assert store.reads == [DIGEST]

    async def test_what_was_put_is_not_read(self) -> None:
        store = MemoryContents()
        cached = CachedContents(store)
        assert await cached.get(await cached.put(DATA)) == DATA
        assert store.reads == []

    async def test_the_oldest_go_first(self) -> None:
        store = MemoryContents()
        first, second, third = [await store.put(bytes([n]) * 40) for n in range(3)]
        cached = CachedContents(store, limit=100)
        for digest in (first, second, first, third, first, second):
            await cached.get(digest)
        assert store.reads == [first, second, third, second]

    async def test_one_above_the_limit_is_not_kept(self) -> None:
        store = MemoryContents({DIGEST: DATA})
        cached = CachedContents(store, limit=len(DATA) - 1)
        assert [await cached.get(DIGEST) for _ in range(2)] == [DATA] * 2
        assert store.reads == [DIGEST] * 2


class TestChoice:
    @pytest.mark.parametrize("environ", [{}, {VARIABLE: " "}], ids=["unset", "empty"])
    def test_temporal(self, environ: dict[str, str]) -> None:
        assert isinstance(content_store(NO_CLIENT, environ), TemporalContents)

    def test_the_variable_of_this_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(VARIABLE, str(tmp_path))
        assert isinstance(content_store(NO_CLIENT), FileContents)

    @pytest.mark.parametrize("url", ["nonsense://bucket", "s3://bucket/prefix"])
    def test_what_fsspec_does_not_have(self, url: str) -> None:
        with pytest.raises(ContentStoreError, match=rf"{VARIABLE}: .*found '{url}'.*install"):
            content_store(NO_CLIENT, {VARIABLE: url})

    async def test_a_worker_says_so_at_its_start(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(VARIABLE, "nonsense://bucket")
        client = await Client.connect("127.0.0.1:1", lazy=True)
        with pytest.raises(ContentStoreError):
            PlansPlugin().configure_worker(WorkerConfig(client=client))

    def test_the_extra_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = "temporal_plans.activities.contents.file_contents"
        monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, "fsspec.core", None)
        with pytest.raises(ContentStoreError, match=r"needs fsspec .*temporal-plans\[contents\]"):
            content_store(NO_CLIENT, {VARIABLE: "s3://bucket"})
