"""The removal of an instance's objects from a cluster: the order, and why an object is still there.

Objects go in the reverse order of their application. A custom resource is gone before what was
applied before it is deleted, because the controller that its finalizers wait for may be among that.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from temporal_plans.domain.packages.belonging import other_namespace
from temporal_plans.domain.packages.enhancement import INSTANCE_LABEL
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import Manifest, entries, part

_BUILT_IN_GROUPS = frozenset(
    {"", "apps", "autoscaling", "batch", "extensions", "policy"}
    | {
        f"{group}.k8s.io"
        for group in (
            *("admissionregistration", "apiextensions", "apiregistration", "authorization"),
            *("certificates", "coordination", "discovery", "events", "flowcontrol.apiserver"),
            *("networking", "node", "rbac.authorization", "resource", "scheduling", "storage"),
        )
    }
)

_FOREGROUND = "foregroundDeletion"
_CONDITIONS = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceContentRemaining",
    "NamespaceFinalizersRemaining",
    "Terminating",
)
"""Conditions of Namespaces and CustomResourceDefinitions that say why they are not gone."""


def removal_stages(inventory: Sequence[ObjectRef]) -> Iterator[tuple[ObjectRef, ...]]:
    """Yield the objects to delete together; those of a stage must be gone before the next begins.

    ``inventory`` is in the order of application. An object that is named twice is deleted where it
    was named first.
    """
    first: dict[object, ObjectRef] = {}
    for ref in inventory:
        first.setdefault(ref.key, ref)
    for _, stage in groupby(reversed(first.values()), key=is_custom):
        yield tuple(stage)


def is_custom(ref: ObjectRef) -> bool:
    """Return whether the object is of a kind that Kubernetes itself does not have."""
    return ref.key[0] not in _BUILT_IN_GROUPS


def belongs_to(live: Manifest, instance: str, namespace: str) -> bool:
    """Return whether an object still has the label of the instance, which is in a namespace."""
    labels = part(live, "metadata", "labels")
    return labels.get(INSTANCE_LABEL) == instance and not other_namespace(live, namespace)


def why_left(live: Manifest) -> str:
    """Return why an object whose deletion was ordered is still there."""
    said = [
        str(one.get("message"))
        for one in entries(part(live, "status"), "conditions")
        if one.get("type") in _CONDITIONS and one.get("status") == "True"
    ]
    finalizers: list[str] = part(live, "metadata").get("finalizers") or []
    waiting = [one for one in finalizers if one != _FOREGROUND]
    if waiting:
        said.insert(0, f"its finalizers are not removed: {', '.join(waiting)}")
    if not said and _FOREGROUND in finalizers:
        said.append("objects that it owns are not gone")
    return f"is being deleted: {'; '.join(said)}" if said else "is being deleted"
