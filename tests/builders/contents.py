"""A content store in memory."""

from dataclasses import dataclass, field

from temporal_plans.activities.contents.errors import ContentMissing
from temporal_plans.activities.contents.store import check_content, check_digest, digest_of


@dataclass
class MemoryContents:
    """Keeps what is put for ever. ``holders`` are the holds by digest, ``reads`` the digests that
    were read, in order."""

    stored: dict[str, bytes] = field(default_factory=dict[str, bytes])
    holders: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    reads: list[str] = field(default_factory=list[str])

    async def put(self, data: bytes) -> str:
        digest = digest_of(data)
        self.stored[digest] = data
        return digest

    async def get(self, digest: str) -> bytes:
        check_digest(digest)
        self.reads.append(digest)
        if digest not in self.stored:
            raise ContentMissing(digest)
        check_content(digest, self.stored[digest], "put it again")
        return self.stored[digest]

    async def hold(self, digest: str, holder: str) -> None:
        check_digest(digest)
        if digest not in self.stored:
            raise ContentMissing(digest)
        self.holders.setdefault(digest, set()).add(holder)

    async def release(self, digest: str, holder: str) -> None:
        check_digest(digest)
        self.holders.get(digest, set()).discard(holder)
