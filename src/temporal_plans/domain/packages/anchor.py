"""The anchor of an instance: a ConfigMap that owns all its objects in the namespace.

Where it is deleted Kubernetes deletes them, also when nothing of ours runs any more. It does not
control them: an object has one controller, and a Deployment's pods need theirs.
"""

from copy import deepcopy
from typing import cast

from temporal_plans.domain.packages.enhancement import (
    HERITAGE,
    INSTANCE_LABEL,
    Origin,
    enhanced,
)
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import Manifest, Object, part, put

_SERVICE, _INSTALLATION = "service", "installation"


def anchor_name(instance: str) -> str:
    """Return the name of the ConfigMap."""
    return f"{instance}-anchor"


def anchor(origin: Origin) -> Object:
    """Return the anchor of the origin's instance: the same in all its plans."""
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": anchor_name(origin.instance)},
    }
    whole = origin.but(plan="", phase="", step="", uid="")
    return enhanced(manifest, whole, namespaced=True)


def anchor_ref(instance: str, namespace: str) -> ObjectRef:
    """Return the identity of the anchor of an instance."""
    return ObjectRef(
        api_version="v1", kind="ConfigMap", namespace=namespace, name=anchor_name(instance)
    )


def claimed(instance: str, namespace: str, service: str, installation: str = "") -> Object:
    """Return a new anchor that says which service has the instance: no other may have it, too.
    ``installation`` as in ``recording_installation``.

    It is created, not applied: what is applied later leaves its data alone.
    """
    manifest = anchor_ref(instance, namespace).manifest
    put(manifest, ("metadata", "labels"), {INSTANCE_LABEL: instance, **HERITAGE})
    recorded = {_INSTALLATION: installation} if installation else {}
    return {**manifest, "data": {_SERVICE: service, **recorded}}


def claim_of(live: Manifest, instance: str) -> str | None:
    """Return the service that has the instance of an anchor, empty when it does not say; None for a
    ConfigMap that is no anchor."""
    if part(live, "metadata", "labels").get(INSTANCE_LABEL) != instance:
        return None
    service = part(live, "data").get(_SERVICE)
    return service if isinstance(service, str) else ""


def recording_installation(live: Manifest) -> str:
    """Return the installation (the first run id of its Instance) whose inventory has all
    cluster-scoped objects of the instance; empty when the anchor names none. An Instance that was
    terminated took its inventory along, and the next one is another installation."""
    installation = part(live, "data").get(_INSTALLATION)
    return installation if isinstance(installation, str) else ""


def noting_installation(installation: str) -> Manifest:
    """Return the change of an anchor whose instance has all of its objects recorded."""
    return {"data": {_INSTALLATION: installation}}


def owned(manifest: Manifest, live_anchor: Manifest) -> Object:
    """Return an object of the anchor's namespace with the anchor as one of its owners; one that is
    cluster-scoped, or the anchor itself, as it is."""
    made: Object = deepcopy(dict(manifest))
    metadata, owner = part(made, "metadata"), part(live_anchor, "metadata")
    if metadata.get("namespace") != owner["namespace"]:
        return made
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["name"],
        "uid": owner["uid"],
    }
    known = metadata.get("ownerReferences")
    others = cast(list[object], known) if isinstance(known, list) else []
    made["metadata"]["ownerReferences"] = [*others, reference]
    return made
