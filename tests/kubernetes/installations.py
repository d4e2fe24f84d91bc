"""Objects of an installation, as its plans would have applied them."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from kubernetes.cluster_client import Object
from kubernetes.namespaces import Namespace
from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.activities.packages.access import UseCluster
from temporal_plans.domain.packages.anchor import claimed, owned
from temporal_plans.domain.packages.enhancement import Origin, enhanced
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


def lending(cluster: Cluster) -> UseCluster:
    """Lends a cluster that is connected already."""

    def use() -> AbstractAsyncContextManager[Cluster]:
        return nullcontext(cluster)

    return use


async def apply(
    cluster: Cluster, package: InstalledPackage, manifests: Sequence[Object]
) -> list[Object]:
    """Apply objects of the package and its anchor, which owns those in the namespace."""
    anchor = claimed(package.instance, package.namespace, package.service)
    await cluster.create(anchor)
    found = await cluster.get(anchor)
    assert found is not None
    origin = Origin(operator="web", instance=package.instance, namespace=package.namespace)
    made = [
        enhanced(one, origin, namespaced=one["kind"] not in _CLUSTER_SCOPED) for one in manifests
    ]
    return [await cluster.apply(owned(one, found)) for one in made]


def inventory_of(objects: Sequence[Object]) -> tuple[ObjectRef, ...]:
    """The identities of objects, in their order."""
    return tuple(ObjectRef.of(one) for one in objects)
