"""The protocol of content stores, and what every store checks."""

import hashlib
import re
from typing import Protocol

from temporal_plans.activities.contents.errors import (
    ContentDamaged,
    ContentTooLarge,
    InvalidDigest,
)
from temporal_plans.messages.contents import CONTENT_LIMIT

_DIGEST = re.compile(r"[0-9a-f]{64}")


class ContentStore(Protocol):
    """Keeps bytes under their SHA-256. ``tests/content_suite.py`` tests every implementation.

    All but ``put`` raise InvalidDigest for a text that is no digest.
    """

    async def put(self, data: bytes) -> str:
        """Store bytes, and return their digest. It may be repeated, also after it was cut off.
        What is put is kept for a day. Raises ContentTooLarge."""
        ...

    async def get(self, digest: str) -> bytes:
        """Return the bytes of this digest, which is always checked. Raises ContentMissing,
        ContentDamaged."""
        ...

    async def hold(self, digest: str, holder: str) -> None:
        """Keep a content until the holder, a workflow id, releases it or is closed. It may be
        repeated. Raises ContentMissing."""
        ...

    async def release(self, digest: str, holder: str) -> None:
        """End a hold. It may be repeated; without a hold or a content nothing happens."""
        ...


def digest_of(data: bytes) -> str:
    """Return the digest of bytes that are to be stored. Raises ContentTooLarge."""
    if len(data) > CONTENT_LIMIT:
        raise ContentTooLarge(len(data))
    return hashlib.sha256(data).hexdigest()


def check_digest(digest: str) -> None:
    """Raise InvalidDigest for a text that is no digest: stores make ids and paths of it."""
    if not _DIGEST.fullmatch(digest):
        raise InvalidDigest(digest)


def check_content(digest: str, data: bytes, place: str) -> None:
    """Raise ContentDamaged when bytes that were read have another digest. ``place`` says what to do
    with what is stored there."""
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise ContentDamaged(digest, f"its bytes have the digest {found}", place)
