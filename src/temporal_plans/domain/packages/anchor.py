"""The anchor of an instance: the ConfigMap that owns its namespaced objects, so that a cluster
removes them when it is deleted."""

from collections.abc import Mapping
from typing import Any

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.labels import HERITAGE, HERITAGE_VALUE, INSTANCE

SERVICE_KEY = "service"


def anchor_ref(instance: str, namespace: str) -> ObjectRef:
    """Return the identity of the anchor of an instance."""
    return ObjectRef(
        api_version="v1", kind="ConfigMap", namespace=namespace, name=f"{instance}-anchor"
    )


def anchor_manifest(instance: str, namespace: str, service: str) -> dict[str, Any]:
    """Return the anchor; ``service`` is the name of the service that has the instance."""
    manifest = anchor_ref(instance, namespace).manifest
    manifest["metadata"]["labels"] = {HERITAGE: HERITAGE_VALUE, INSTANCE: instance}
    return {**manifest, "data": {SERVICE_KEY: service}}


def anchored_service(live: Mapping[str, Any]) -> str:
    """Return the service that an anchor names; empty for a ConfigMap that is none."""
    return str((live.get("data") or {}).get(SERVICE_KEY) or "")
