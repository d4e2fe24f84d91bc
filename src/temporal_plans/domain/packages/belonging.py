"""Whether an object in a cluster belongs to an instance, or to something else."""

from temporal_plans.domain.packages.enhancement import INSTANCE_LABEL, controller_of
from temporal_plans.domain.packages.manifests import Manifest, group_kind, name_of, part
from temporal_plans.domain.values.refusal import Reason

_GROUP, _KIND = "kudo.dev", "Instance"


def foreign(live: Manifest, instance: str) -> Reason | None:
    """Return why an instance must not change an object that is there already; None when it may.

    An object without any instance is taken over.
    """
    holder = part(live, "metadata", "labels").get(INSTANCE_LABEL)
    if holder is not None and holder != instance:
        return Reason(
            problem=f"it belongs to the instance {holder}",
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
