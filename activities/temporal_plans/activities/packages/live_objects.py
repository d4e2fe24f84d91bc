"""What is there already of objects that are to be applied: their metadata."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from temporal_plans.activities.kubernetes.cluster import Cluster, Manifest, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.domain.packages.inventory import ObjectRef

_LIST_MINIMUM = 5
"""From so many objects of a kind on one list costs less than a request for each."""

_LIST_LIMIT = 1000
"""Objects in a list; those of a namespace that has more are asked for one by one."""

_FORBIDDEN = 403

Key = tuple[str, str, str, str]


async def live_metadata(
    cluster: Cluster, manifests: Sequence[Manifest], *, limit: int = _LIST_LIMIT
) -> Mapping[Key, Object | None]:
    """Return for each object, by its key, what is there under its name, at least the metadata; None
    where there is nothing. Lists have at most ``limit`` objects. Raises ClusterError."""
    found: dict[Key, Object | None] = {}
    ordered = sorted(manifests, key=_kind)
    for _, members in groupby(ordered, _kind):
        group = list(members)
        if len(group) >= _LIST_MINIMUM:
            found |= await _listed(cluster, group, limit)
    missing = [one for one in manifests if ObjectRef.of(one).key not in found]
    lives = await gather_bounded(cluster.get(one) for one in missing)
    keys = [ObjectRef.of(one).key for one in missing]
    return found | dict(zip(keys, lives, strict=True))


def _kind(manifest: Manifest) -> tuple[str, str, str]:
    ref = ObjectRef.of(manifest)
    return ref.api_version, ref.kind, ref.namespace


async def _listed(
    cluster: Cluster, group: Sequence[Manifest], limit: int
) -> dict[Key, Object | None]:
    """Return those that a list has. That others are not there follows from a complete list only."""
    try:
        items, complete = await cluster.list_metadata(group[0], limit=limit)
    except ClusterError as error:
        if error.status == _FORBIDDEN:  # a role may permit requests for single objects only
            return {}
        raise
    by_name = {item["metadata"]["name"]: item for item in items}
    lives = {ObjectRef.of(one).key: by_name.get(one["metadata"]["name"]) for one in group}
    return {key: live for key, live in lives.items() if complete or live is not None}
