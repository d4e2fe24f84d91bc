"""The cluster-scoped objects of an instance, found in the cluster by their marks.

Everything in a namespace goes with the anchor. What is cluster-scoped has no such owner: when the
inventory of an Instance is lost, the objects themselves are the only record.
"""

from collections.abc import Sequence

from temporal_plans.activities.kubernetes.cluster import FIELD_MANAGER, Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.domain.packages.belonging import applied_for
from temporal_plans.domain.packages.enhancement import HERITAGE, INSTANCE_LABEL
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.messages.packages import OBJECTS_LIMIT

_NOT_LISTABLE = (403, 405)
"""An account that may not list a kind has no role for it, and has applied none."""


async def cluster_objects(cluster: Cluster, instance: str, namespace: str) -> Sequence[ObjectRef]:
    """Return the cluster-scoped objects that were applied for the instance in the namespace, the
    oldest first. Kinds that the worker's account may not list are left out. Raises ClusterError."""
    marks = {**HERITAGE, INSTANCE_LABEL: instance}
    labels = ",".join(f"{key}={value}" for key, value in marks.items())
    kinds = [
        (version, kind) for version, kind, namespaced in await cluster.kinds() if not namespaced
    ]
    found = await gather_bounded(_listed(cluster, *one, labels) for one in kinds)
    applied = [
        live
        for lives in found
        for live in lives
        if applied_for(live, instance, namespace, FIELD_MANAGER)
    ]
    applied.sort(key=lambda live: str(live["metadata"].get("creationTimestamp")))
    return [ObjectRef.of(live) for live in applied]


async def _listed(cluster: Cluster, version: str, kind: str, labels: str) -> list[Object]:
    try:
        found = await cluster.find(version, kind, labels=labels, limit=OBJECTS_LIMIT)
    except ClusterError as error:
        if error.status in _NOT_LISTABLE:
            return []
        raise
    return [{**live, "apiVersion": version, "kind": kind} for live in found]
