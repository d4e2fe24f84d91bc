"""Objects of an installation, as its plans would have applied them."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import cast

from temporalio.client import Client

from kubernetes.cluster_client import Object
from kubernetes.namespaces import Namespace
from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.activities.packages.access import UseCluster
from temporal_plans.domain.packages.anchor import anchor_ref, claimed, owned
from temporal_plans.domain.packages.enhancement import Origin, enhanced
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.messages.packages import InstalledPackage, Inventory

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


class _Owner:
    """A client that knows one Instance, and asks it for its inventory."""

    def __init__(self, package: InstalledPackage, refs: Sequence[ObjectRef]) -> None:
        self._package = package
        self._refs = tuple(refs)

    def get_workflow_handle(self, workflow_id: str) -> "_Owner":
        assert workflow_id == f"service/{self._package.service}"
        return self

    async def query(self, name: str, *, result_type: type[Inventory]) -> Inventory:
        assert name == "inventory"
        return result_type(package=self._package, objects=self._refs)


def client_of(package: InstalledPackage, objects: Sequence[Object]) -> Client:
    """A client that knows the Instance of a package, with its anchor and these objects."""
    return client_with(
        package, [anchor_ref(package.instance, package.namespace), *inventory_of(objects)]
    )


def client_with(package: InstalledPackage, refs: Sequence[ObjectRef]) -> Client:
    """A client that knows the Instance of a package, with these objects."""
    return cast(Client, _Owner(package, refs))
