"""Contents as files at a place that fsspec knows: a folder, S3, GCS.

A content is the file ``<place>/<sha256>``, compressed by gzip. Where a file that is being written
can be read (a folder), it is written under another name and renamed; object stores show an object
when it is complete. A put always writes: the rules of the place may delete files by their age.
"""

import asyncio
import gzip
import zlib
from contextlib import suppress
from typing import Protocol, cast
from uuid import uuid4

import fsspec.core  # type: ignore[import-untyped]

from temporal_plans.activities.contents.errors import (
    ContentDamaged,
    ContentMissing,
    ContentUnavailable,
)
from temporal_plans.activities.contents.store import check_content, check_digest, digest_of
from temporal_plans.messages.contents import CONTENT_LIMIT

_OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oci", "oss"})
"""Protocols of places where an object appears when it is complete."""

_GZIP = 16 + zlib.MAX_WBITS


class _FileSystem(Protocol):
    """What is used of ``fsspec.AbstractFileSystem``, which has no types."""

    protocol: str | tuple[str, ...]

    def makedirs(self, path: str, exist_ok: bool) -> None: ...
    def pipe_file(self, path: str, value: bytes) -> None: ...
    def cat_file(self, path: str) -> bytes: ...
    def mv(self, path1: str, path2: str) -> None: ...
    def rm_file(self, path: str) -> None: ...


class FileContents:
    """The ContentStore at a URL for fsspec. ``hold`` and ``release`` do nothing: files are deleted
    by the rules of the place (a bucket's life cycle), or not at all.

    Raises ImportError when the package for the URL's protocol is not installed, and ValueError for
    an unknown protocol. Calls raise ContentUnavailable while the place does not answer.
    """

    def __init__(self, url: str) -> None:
        found = cast(tuple[_FileSystem, str], fsspec.core.url_to_fs(url))  # pyright: ignore
        self._files, path = found
        self._place = path.rstrip("/")
        protocols = self._files.protocol
        names = {protocols} if isinstance(protocols, str) else set(protocols)
        self._renames = not names & _OBJECT_STORES

    async def put(self, data: bytes) -> str:
        digest = digest_of(data)
        try:
            await asyncio.to_thread(self._write, digest, data)
        except OSError as error:  # what fsspec raises for failures of any place
            raise ContentUnavailable(self._place, error) from error
        return digest

    async def get(self, digest: str) -> bytes:
        check_digest(digest)
        return await asyncio.to_thread(self._read, digest)

    async def hold(self, digest: str, holder: str) -> None:
        check_digest(digest)

    async def release(self, digest: str, holder: str) -> None:
        check_digest(digest)

    def _write(self, digest: str, data: bytes) -> None:
        packed, path = gzip.compress(data, mtime=0), f"{self._place}/{digest}"
        if not self._renames:
            self._files.pipe_file(path, packed)
            return
        self._files.makedirs(self._place, exist_ok=True)
        partial = f"{self._place}/.{digest}.{uuid4().hex}"
        try:
            self._files.pipe_file(partial, packed)
            self._files.mv(partial, path)
        except BaseException:
            with suppress(Exception):  # it was never written, or the place does not answer
                self._files.rm_file(partial)
            raise

    def _read(self, digest: str) -> bytes:
        path = f"{self._place}/{digest}"
        try:
            packed = self._files.cat_file(path)
        except FileNotFoundError:
            raise ContentMissing(digest, f"is not in {self._place}") from None
        except OSError as error:
            raise ContentUnavailable(self._place, error) from error
        cure = f"delete {path}"
        try:
            data = _expanded(packed)
        except ValueError as error:
            raise ContentDamaged(digest, str(error), cure) from error
        check_content(digest, data, cure)
        return data


def _expanded(packed: bytes) -> bytes:
    stream = zlib.decompressobj(_GZIP)
    try:
        data = stream.decompress(packed, CONTENT_LIMIT + 1)
    except zlib.error as error:
        raise ValueError(f"the file can't be expanded ({error})") from error
    if len(data) > CONTENT_LIMIT or not stream.eof:
        raise ValueError(f"the file is cut off, or has more than {CONTENT_LIMIT:,} bytes")
    return data
