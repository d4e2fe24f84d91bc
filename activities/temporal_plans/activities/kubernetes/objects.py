"""What a step does with the objects of a template: apply all, then look; delete all, then look."""

from collections.abc import Sequence

from temporal_plans.activities.kubernetes.cluster import Cluster, Manifest, Object
from temporal_plans.domain.packages.health import Health, HealthState, health


async def apply_all(cluster: Cluster, manifests: Sequence[Manifest]) -> list[Object]:
    """Apply objects in their order, and return them as they are then.

    ClusterError at the first that the cluster refuses: those before it stay applied.
    """
    return [await cluster.apply(manifest) for manifest in manifests]


def health_of_all(applied: Sequence[Object]) -> Health:
    """Return the health of several objects: that of the first that failed, else of the first that
    is unhealthy, with its kind and name before the reason."""
    judged = [(live, health(live)) for live in applied]
    for state in (HealthState.FAILED, HealthState.UNHEALTHY):
        for live, found in judged:
            if found.state is state:
                subject = f"{live['kind']} {live['metadata']['name']}"
                return found.but(reason=f"{subject}: {found.reason}")
    return Health(state=HealthState.HEALTHY)


async def delete_all(cluster: Cluster, manifests: Sequence[Manifest]) -> list[str]:
    """Order the deletion of objects, and return the kind and name of those that are still there.

    What the cluster does not have, kinds included, is deleted already. Call it again until nothing
    is left: an order that is repeated changes nothing.
    """
    for manifest in manifests:
        await cluster.delete(manifest)
    left = [manifest for manifest in manifests if await cluster.get(manifest) is not None]
    return [f"{manifest['kind']} {manifest['metadata']['name']}" for manifest in left]
