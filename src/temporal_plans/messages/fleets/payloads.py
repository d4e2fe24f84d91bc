"""What a release carries: its files, or its package."""

import hashlib
import json
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator

from temporal_plans.domain.values.model import WITH_DEFAULTS, CompactValue, WorkflowId

PAYLOAD_LIMIT = 100_000
"""Characters of the files of one release."""


_FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+$", max_length=100)]


_Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


PACKAGE_FILE = "operator.yaml"
"""Stands for the whole package in lists of the files of a release."""


class ReleasePackage(CompactValue):
    """The operator package of a release: the digest of its archive in the content store, and those
    of the packages nested in it."""

    name: str = Field(max_length=253)
    version: str = Field(default="", max_length=200)
    digest: _Digest
    nested: tuple[_Digest, ...] = Field(default=(), max_length=100)


class ReleasePayload(CompactValue):
    """What a release carries: files by name (plan files, or a ``svc.yml``), or an operator package.
    It is kept in the content store; products know its digest."""

    files: dict[_FileName, str] = Field(default={}, max_length=20)
    package: ReleasePackage | None = None

    @model_validator(mode="after")
    def _bounded(self) -> "ReleasePayload":
        if self.size > PAYLOAD_LIMIT:
            raise ValueError(f"has more than {PAYLOAD_LIMIT} characters ({self.size})")
        return self

    @property
    def size(self) -> int:
        return sum(map(len, self.files.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of what it carries, sorted."""
        return tuple(sorted({*self.files, *([PACKAGE_FILE] if self.package else [])}))

    @property
    def data(self) -> bytes:
        """The bytes that the content store keeps."""
        kept: dict[str, Any] = dict(self.files)
        if self.package is not None:
            package = self.package.model_dump(mode="json", context=WITH_DEFAULTS)
            kept = {"files": self.files, "package": package}
        return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def of(cls, data: bytes) -> "ReleasePayload":
        """Return what the content store keeps as ``data``."""
        kept = json.loads(data)
        if isinstance(kept.get("package"), dict):
            return cls.model_validate(kept)
        return cls(files=kept)

    @property
    def digest(self) -> str:
        """The SHA-256 of its data; empty when it carries nothing."""
        return hashlib.sha256(self.data).hexdigest() if self.names else ""


class KeptFiles(CompactValue):
    """The files of a release as its product knows them: their digest, and their names."""

    digest: str = Field(default="", max_length=64)
    names: tuple[str, ...] = Field(default=(), max_length=20)


class KeepPayload(CompactValue):
    """Input of the activity ``keep_payload``: files that a product holds from now on."""

    payload: ReleasePayload
    holder: WorkflowId
