"""The objects that an installed package has in a cluster."""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from temporal_plans.domain.values.model import CompactValue


class ObjectRef(CompactValue):
    """The identity of an object in a cluster. ``namespace`` is empty for a cluster-scoped one."""

    api_version: str = Field(max_length=300)
    kind: str = Field(max_length=300)
    namespace: str = Field(default="", max_length=300)
    name: str = Field(max_length=300)

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> "ObjectRef":
        """Return the identity of a manifest that has a kind and a name."""
        metadata = manifest["metadata"]
        return cls(
            api_version=manifest["apiVersion"],
            kind=manifest["kind"],
            namespace=metadata.get("namespace") or "",
            name=metadata["name"],
        )

    @property
    def manifest(self) -> dict[str, Any]:
        """The part of a manifest by which a cluster finds the object."""
        metadata = {"name": self.name}
        if self.namespace:
            metadata["namespace"] = self.namespace
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata}

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What identifies the object in all versions of its API: group, kind, namespace, name."""
        group, _, _ = self.api_version.rpartition("/")
        return group, self.kind, self.namespace, self.name

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"
