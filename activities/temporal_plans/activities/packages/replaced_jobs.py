"""Jobs whose template has changed: the API server changes no Job, so a finished one is replaced."""

import asyncio

from temporal_plans.activities.kubernetes.cluster import Cluster, Manifest, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import entries, group_kind, part

_LOOK_INTERVAL = 0.5
_DELETION_TIMEOUT = 30.0
"""Seconds within which a deleted Job is gone; after that the step tries again."""


def is_job(manifest: Manifest) -> bool:
    return group_kind(manifest) == ("batch", "Job")


async def apply_job(cluster: Cluster, manifest: Object) -> Object:
    """Apply a Job; where the one that is there can't be changed and has ended, delete that first.

    Raises TaskProblem when it runs, and ClusterError.
    """
    try:
        return await cluster.apply(manifest)
    except ClusterError as error:
        if not error.immutable:
            raise
        live = await cluster.get(manifest)
        if live is not None and not _has_ended(live):
            raise TaskProblem(
                f"{error}; it runs with another template: wait for its end or delete it, then"
                " restart the step",
                about=ObjectRef.of(manifest),
            ) from error
    await cluster.delete(manifest)
    await _until_gone(cluster, manifest)
    return await cluster.apply(manifest)


def _has_ended(live: Manifest) -> bool:
    return any(
        condition.get("type") in ("Complete", "Failed") and condition.get("status") == "True"
        for condition in entries(part(live, "status"), "conditions")
    )


async def _until_gone(cluster: Cluster, manifest: Manifest) -> None:
    end = asyncio.get_running_loop().time() + _DELETION_TIMEOUT
    while await cluster.get(manifest) is not None:
        if asyncio.get_running_loop().time() > end:
            ref = ObjectRef.of(manifest)
            problem = f"{ref}: it is being deleted, to be made again with the new template"
            raise TaskProblem(problem, passing=True, about=ref)
        await asyncio.sleep(_LOOK_INTERVAL)
