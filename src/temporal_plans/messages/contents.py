"""Contents: bytes under their SHA-256, for packages, manifests and large files of services.

In Temporal a content is the open workflow ``content/<sha256>`` (type ``Content``), started with its
bytes. One of more than ``PART_SIZE`` bytes has further parts, ``content/<sha256>/2`` and so on,
which are workflows of the same type; the first part is started last, and is their holder.
"""

import base64
import json
import zlib
from collections.abc import Iterable
from typing import Annotated, Self

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints

from temporal_plans.domain.values.model import CompactValue, WorkflowId
from temporal_plans.messages.malformed import SignalArgument

CONTENT_LIMIT = 10 * 1024 * 1024
"""Bytes of one content."""

PART_SIZE = 1_125_000
"""Bytes of a part, before compression: bytes that can't be compressed are 1.5 MB in base64. With
the holders that is less than a payload of Temporal may have, also when a codec adds to it. Contents
are divided before they are compressed: parts of two clients whose zlib differs fit together. For
the same reason another size needs other ids."""

PARTS_LIMIT = 16
"""Parts of one content; more than the largest one has."""

HOLDERS_SIZE_LIMIT = 400_000
"""Bytes of the holders of one content, as JSON."""

CONTENT_TYPE = "Content"

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""The SHA-256 of a content in hexadecimal digits."""


def content_id(digest: str, part: int = 1) -> str:
    """Return the workflow id of a content, or of one of its further parts."""
    return f"content/{digest}" if part == 1 else f"content/{digest}/{part}"


def holders_size(holders: Iterable[str]) -> int:
    """Return the bytes of holders as JSON, at most."""
    return sum(len(json.dumps(holder)) + 1 for holder in holders)


def _bounded(holders: tuple[str, ...]) -> tuple[str, ...]:
    if (size := holders_size(holders)) > HOLDERS_SIZE_LIMIT:
        raise ValueError(f"{size:,} bytes of holders; at most {HOLDERS_SIZE_LIMIT:,} fit")
    return holders


HolderIds = Annotated[tuple[WorkflowId, ...], AfterValidator(_bounded)]
"""The workflow ids of holders, at most ``HOLDERS_SIZE_LIMIT`` bytes."""


class ContentPart(CompactValue):
    """Input of the workflow ``Content``. ``packed`` is the bytes, deflated (zlib), in base64. The
    fields from ``holders`` on are carried from run to run."""

    packed: str = Field(max_length=1_600_000)
    part: int = Field(default=1, ge=1, le=PARTS_LIMIT)
    parts: int = Field(default=1, ge=1, le=PARTS_LIMIT)
    holders: HolderIds = ()
    crowded: bool = Field(default=False, description="there were more holders than fit")
    kept_until: AwareDatetime | None = None
    next_check: AwareDatetime | None = None
    history_limit: int = Field(default=4000, ge=10, description="events of a run")

    @classmethod
    def of(cls, data: bytes, *, part: int = 1, parts: int = 1, holder: str = "") -> Self:
        """Return a part with these bytes."""
        packed = base64.b64encode(zlib.compress(data)).decode("ascii")
        return cls(packed=packed, part=part, parts=parts, holders=(holder,) if holder else ())

    def data(self) -> bytes:
        """Return the bytes. Raises ValueError when they can't be read."""
        stream = zlib.decompressobj()
        try:
            data = stream.decompress(base64.b64decode(self.packed, validate=True), CONTENT_LIMIT)
        except (ValueError, zlib.error) as error:
            raise ValueError(f"can't be expanded: {error}") from error
        if not stream.eof:
            raise ValueError(f"is cut off, or expands to more than {CONTENT_LIMIT} bytes")
        return data


class ContentHolder(SignalArgument):
    """Argument of the signals ``hold`` and ``release`` of a ``Content``. ``holder`` is a workflow
    id; ``hold`` without one keeps the content for a day."""

    holder: WorkflowId = ""


class ContentStatus(CompactValue):
    """Answer of the query ``status`` of a ``Content``, which ends at ``kept_until`` when it has no
    holders."""

    part: int
    parts: int
    holders: tuple[str, ...] = ()
    crowded: bool = False
    kept_until: AwareDatetime


class ContentHold(CompactValue):
    """Input of the activities ``hold_content`` and ``release_content``."""

    digest: Digest
    holder: Annotated[WorkflowId, Field(min_length=1)]


class Holders(CompactValue):
    """Input and result of the activity ``closed_holders``: workflow ids."""

    holders: HolderIds = ()
