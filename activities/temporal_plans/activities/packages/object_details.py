"""What pods and events say about an object."""

from typing import NamedTuple

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.domain.packages.manifests import group_kind, part
from temporal_plans.domain.packages.pod_trouble import in_trouble, only_starts, troubles, warnings

_PODS_LIMIT, _EVENTS_LIMIT = 50, 50
_WITH_PODS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("apps", "ReplicaSet"),
        ("batch", "Job"),
    }
)


class ObjectDetails(NamedTuple):
    """Lines about its pods in trouble, and about its last warnings."""

    pods: tuple[str, ...] = ()
    events: tuple[str, ...] = ()

    @property
    def first(self) -> str:
        """The line that says most: of a pod that does not just start, else of an event."""
        pods = [line for line in self.pods if not only_starts(line)]
        return next(iter((*pods, *self.events)), "")


async def details(cluster: Cluster, live: Object) -> ObjectDetails:
    """Read the pods that an object wants, and the events of it and of the first pod in trouble.
    Raises ClusterError."""
    pods = await _pods(cluster, live)
    uids = [part(one, "metadata").get("uid") for one in (live, *in_trouble(pods)[:1])]
    events = [event for uid in uids for event in await _events(cluster, live, str(uid))]
    return ObjectDetails(troubles(pods), warnings(events))


async def _pods(cluster: Cluster, live: Object) -> list[Object]:
    labels = part(live, "spec", "selector", "matchLabels")
    if group_kind(live) not in _WITH_PODS or not labels:
        return []
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    namespace = live["metadata"]["namespace"]
    return await cluster.find("v1", "Pod", namespace, labels=selector, limit=_PODS_LIMIT)


async def _events(cluster: Cluster, live: Object, uid: str) -> list[Object]:
    namespace = live["metadata"].get("namespace") or "default"
    return await cluster.find(
        "v1", "Event", namespace, fields=f"involvedObject.uid={uid}", limit=_EVENTS_LIMIT
    )
