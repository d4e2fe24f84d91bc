"""What is in a cluster: all objects of all kinds."""

from collections.abc import Iterable
from typing import Any, NamedTuple

_SHADOWS = frozenset({"Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision"})
"""Kinds whose objects the cluster makes of others, and removes when it comes to it."""


class Identity(NamedTuple):
    """What identifies an object, whatever the version of its kind."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{place}"


def identity(group: str, live: dict[str, Any]) -> Identity:
    """Return what identifies an object of an API group."""
    metadata = live["metadata"]
    return Identity(group, live["kind"], metadata.get("namespace", ""), metadata["name"])


def listed(resources: Iterable[Any]) -> dict[tuple[str, str], Any]:
    """Return of each kind whose objects can be listed one resource, that of the preferred
    version."""
    found: dict[tuple[str, str], Any] = {}
    for one in resources:
        whole = "list" in (one.verbs or ()) and "/" not in one.name and one.kind not in _SHADOWS
        if whole and not one.kind.endswith("List"):
            key = (one.group or "", one.kind)
            if key not in found or one.preferred:
                found[key] = one
    return found
