"""Objects of an installation, as its plans would have applied them."""

import copy
from collections.abc import Sequence

from kubernetes.cluster_client import Object
from kubernetes.namespaces import Namespace
from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.domain.packages.anchor import anchor_manifest
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.messages.packages import InstalledPackage

INSTANCE = "web"
_CLUSTER_SCOPED = frozenset({"ClusterRole", "CustomResourceDefinition"})


def package_in(namespace: Namespace) -> InstalledPackage:
    """A package that is installed as ``web`` by a service of that name."""
    return InstalledPackage(
        service=INSTANCE,
        instance=INSTANCE,
        cluster="tests",
        namespace=namespace.name,
        content="0" * 64,
    )


def labelled(manifest: Object, instance: str) -> Object:
    """The manifest with the labels of an instance."""
    made = copy.deepcopy(manifest)
    labels = made["metadata"].setdefault("labels", {})
    labels |= {"heritage": "kudo", "kudo.dev/instance": instance}
    for claim in made.get("spec", {}).get("volumeClaimTemplates", []):
        claim["metadata"]["labels"] = dict(labels)
    return made


async def apply(
    cluster: Cluster, package: InstalledPackage, manifests: Sequence[Object]
) -> list[Object]:
    """Apply objects of the package and its anchor, which owns those in the namespace."""
    anchor = await cluster.apply(
        anchor_manifest(package.instance, package.namespace, package.service)
    )
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": anchor["metadata"]["name"],
        "uid": anchor["metadata"]["uid"],
    }
    applied: list[Object] = []
    for manifest in manifests:
        made = labelled(manifest, package.instance)
        if made["kind"] not in _CLUSTER_SCOPED:
            made["metadata"] |= {"namespace": package.namespace, "ownerReferences": [owner]}
        applied.append(await cluster.apply(made))
    return applied


def inventory_of(objects: Sequence[Object]) -> tuple[ObjectRef, ...]:
    """The identities of objects, in their order."""
    return tuple(ObjectRef.of(one) for one in objects)
