"""Whether an object in a cluster belongs to an instance, or to something else."""

from temporal_plans.domain.packages.enhancement import (
    HERITAGE,
    INSTANCE_LABEL,
    NAMESPACE_KEY,
    controller_of,
)
from temporal_plans.domain.packages.manifests import Manifest, entries, group_kind, name_of, part
from temporal_plans.domain.values.refusal import Reason

_GROUP, _KIND = "kudo.dev", "Instance"


def foreign(live: Manifest, instance: str, namespace: str) -> Reason | None:
    """Return why an instance must not change an object that is there already; None when it may.

    An object without any instance is taken over.
    """
    holder = part(live, "metadata", "labels").get(INSTANCE_LABEL)
    elsewhere = other_namespace(live, namespace)
    if holder is not None and (holder != instance or elsewhere):
        where = f" of namespace {elsewhere}" if elsewhere else ""
        return Reason(
            problem=f"it belongs to the instance {holder}{where}",
            fix="give it another name in the template, or uninstall that instance",
        )
    controller = controller_of(live)
    if controller is None or _is_own(controller, instance):
        return None
    who = f"{controller.get('kind')} {controller.get('name')}"
    return Reason(
        problem=f"it is controlled by {who}",
        fix="give it another name in the template, or delete what controls it",
    )


def other_namespace(live: Manifest, namespace: str) -> str:
    """Return the namespace of the instance that an object of the cluster belongs to, when that is
    another one; empty also where none is noted."""
    if part(live, "metadata").get("namespace"):
        return ""
    held = part(live, "metadata", "annotations").get(NAMESPACE_KEY)
    return held if isinstance(held, str) and held != namespace else ""


def applied_for(live: Manifest, instance: str, namespace: str, manager: str) -> bool:
    """Return whether ``manager`` applied a cluster-scoped object for the instance in the namespace.

    Controllers copy labels and annotations to objects that they make; these they did not apply as
    this field manager.
    """
    metadata = part(live, "metadata")
    labels = part(metadata, "labels")
    marked = {**HERITAGE, INSTANCE_LABEL: instance}.items() <= labels.items()
    place = part(metadata, "annotations").get(NAMESPACE_KEY)
    managers = entries(metadata, "managedFields")
    applied = any(
        one.get("manager") == manager and one.get("operation") == "Apply" for one in managers
    )
    return marked and place == namespace and not metadata.get("namespace") and applied


def controlled(manifest: Manifest) -> Reason | None:
    """Return why a rendered object can't be applied: it names a controller of its own."""
    controller = controller_of(manifest)
    if controller is None:
        return None
    return Reason(
        problem=f"its template names the controller {controller.get('kind')} "
        f"{controller.get('name')}",
        fix="remove ownerReferences from the template",
    )


def _is_own(controller: Manifest, instance: str) -> bool:
    """The instance's own resource, which a controller left that had it before."""
    named = {**controller, "metadata": {"name": controller.get("name")}}
    return group_kind(named) == (_GROUP, _KIND) and name_of(named) == instance
