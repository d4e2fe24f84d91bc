"""Packages nested in others, by the digests that they have in the content store."""

from typing import Annotated

from pydantic import Field, StringConstraints

from temporal_plans.domain.packages.value import ENTRIES_LIMIT
from temporal_plans.domain.values.model import CompactValue

NESTED_LIMIT = 50
"""Packages nested in one, those in them included."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Nested(CompactValue):
    """The packages nested in one. ``tasks`` has the digest of each by the name of the task that
    installs it; ``contents`` are theirs and those of the packages in them: what must be in the
    content store as long as the package is installed."""

    tasks: dict[str, Digest] = Field(default={}, max_length=ENTRIES_LIMIT)
    contents: tuple[Digest, ...] = Field(default=(), max_length=NESTED_LIMIT)
