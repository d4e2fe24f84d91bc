"""All objects of an installation are removed from a real API server."""

from collections.abc import Sequence
from copy import deepcopy

from kubernetes.control_plane import ControlPlane
from kubernetes.installations import apply, client_of, lending, package_in
from kubernetes.manifests import DEFINITION, config_map, deployment, job, stateful_set
from kubernetes.namespaces import Namespace
from pauses import until
from temporal_plans.activities.kubernetes.cluster import Cluster, Object, connected
from temporal_plans.activities.packages.removal import RemovalActivities, RemovalIntervals
from temporal_plans.messages.packages import (
    RemovalInput,
    TasksOutcome,
    TasksResult,
)

SOON = RemovalIntervals(report_delay=1.0, timeout=1.0)


def cluster_role(namespace: Namespace) -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{namespace.name}-reader"},
        "rules": [],
    }


def removal(cluster: Cluster, order: RemovalInput, objects: Sequence[Object]) -> RemovalActivities:
    return RemovalActivities(client_of(order.package, objects), lending(cluster), SOON)


async def remove(own: Cluster, order: RemovalInput, objects: Sequence[Object]) -> TasksResult:
    """Remove until all is gone."""
    activities = removal(own, order, objects)
    return await until(
        lambda: activities.remove_instance(order), lambda found: found.outcome is TasksOutcome.DONE
    )


async def test_everything_is_removed_and_claims_stay(own: Cluster, namespace: Namespace) -> None:
    package = package_in(namespace)
    objects = await apply(own, package, [
        config_map("settings"),
        deployment("web"),
        stateful_set("db", storage="1Gi"),
        cluster_role(namespace),
    ])  # fmt: skip
    await namespace.until("v1", "PersistentVolumeClaim", "data-db-0", bool)
    order = RemovalInput(owner="service/web", package=package)

    result = await remove(own, order, objects)

    kept = "these volumes stay; delete their claims if they are not needed: "
    assert result.reason == f"{kept}PersistentVolumeClaim data-db-0"
    for one in objects:
        assert await own.get(one) is None
    assert await own.find("v1", "ConfigMap", namespace.name, labels="heritage=kudo") == []

    result = await remove(own, order.but(volumes=True), objects)
    assert result == TasksResult(outcome=TasksOutcome.DONE)
    await namespace.until("v1", "PersistentVolumeClaim", "data-db-0", lambda found: found is None)


async def test_pods_of_a_job_go_with_it(own: Cluster, namespace: Namespace) -> None:
    package = package_in(namespace)
    objects = await apply(own, package, [job("once")])
    await namespace.until_pods("app=once", bool)
    await remove(own, RemovalInput(owner="service/web", package=package), objects)
    await namespace.until_pods("app=once", lambda pods: not pods)


async def test_an_object_of_somebody_else_stays(own: Cluster, namespace: Namespace) -> None:
    package = package_in(namespace)
    objects = await apply(own, package, [*map(config_map, ("ours", "theirs", "unlisted"))])
    taken = objects[1]
    theirs = config_map("theirs")
    theirs["metadata"]["labels"] = {"kudo.dev/instance": "another"}
    await namespace.apply(theirs)

    order = RemovalInput(owner="service/web", package=package)

    result = await remove(own, order, [objects[0], taken])

    assert result.reason == "these objects belong to another owner now and stay: ConfigMap theirs"
    # What the anchor still owned goes with it: the cluster has looked at all that it owned.
    await namespace.until("v1", "ConfigMap", "unlisted", lambda found: found is None)
    left = await own.get(taken)
    assert left is not None
    assert "ownerReferences" not in left["metadata"]
    assert await own.get(objects[0]) is None


async def test_cluster_scoped_objects_are_found_without_an_inventory(
    own: Cluster, namespace: Namespace
) -> None:
    """An Instance that was terminated took its inventory along."""
    package = package_in(namespace)
    role = cluster_role(namespace)
    (ours,) = await apply(own, package, [role])
    copied, elsewhere = deepcopy(ours), deepcopy(ours)
    for other, name in ((copied, "copied"), (elsewhere, "elsewhere")):
        metadata = {"name": f"{namespace.name}-{name}", "labels": ours["metadata"]["labels"]}
        other["metadata"] = {**metadata, "annotations": dict(ours["metadata"]["annotations"])}
    elsewhere["metadata"]["annotations"]["temporal-plans/namespace"] = "another"
    await namespace.apply(copied)  # as a controller would: another field manager
    await own.apply(elsewhere)
    order = RemovalInput(owner="service/web", package=package)
    try:
        await remove(own, order, [])

        assert await own.get(ours) is None
        assert await own.get(copied) is not None
        assert await own.get(elsewhere) is not None
    finally:
        await own.delete(copied)
        await own.delete(elsewhere)


async def test_a_finalizer_is_named_and_holds_the_anchor(
    own: Cluster, namespace: Namespace
) -> None:
    package = package_in(namespace)
    held = config_map("held")
    held["metadata"]["finalizers"] = ["tests.example/keep"]
    objects = await apply(own, package, [held, config_map("free")])
    order = RemovalInput(owner="service/web", package=package)

    reason = "ConfigMap held is being deleted: its finalizers are not removed: tests.example/keep"
    result = await until(
        lambda: removal(own, order, objects).remove_instance(order),
        lambda result: result.reason == reason,  # "free" may take a moment
    )
    assert result.outcome is TasksOutcome.WAITING
    assert str(result.about) == "ConfigMap held"
    assert await namespace.cluster.get("v1", "ConfigMap", "web-anchor", namespace.name)
    await own.merge(objects[0], {"metadata": {"finalizers": []}})
    await remove(own, order.but(shown=reason), objects)


async def test_a_custom_resource_goes_before_what_was_applied_before_it(
    own: Cluster, namespace: Namespace
) -> None:
    """Its controller may be among that, and its finalizers wait for the controller."""
    package = package_in(namespace)
    thing: Object = {
        "apiVersion": "tests.example/v1",
        "kind": "Thing",
        "metadata": {"name": "it", "finalizers": ["tests.example/keep"]},
    }
    before = await apply(own, package, [config_map("settings"), DEFINITION])
    await until(lambda: own.namespaced(thing), lambda found: found is not None)
    objects = before + await apply(own, package, [thing])
    order = RemovalInput(owner="service/web", package=package)

    result = await removal(own, order, objects).remove_instance(order)

    assert result.reason == (
        "Thing it is being deleted: its finalizers are not removed: tests.example/keep"
    )
    assert [bool(await own.get(one)) for one in before] == [True, True]
    await own.merge(objects[-1], {"metadata": {"finalizers": []}})
    await remove(own, order, objects)
    assert [await own.get(one) for one in before] == [None, None]


async def test_a_refused_deletion_is_tried_again(
    control_plane: ControlPlane, own: Cluster, namespace: Namespace
) -> None:
    package = package_in(namespace)
    objects = await apply(own, package, [config_map("settings")])
    order = RemovalInput(owner="service/web", package=package)
    async with connected(control_plane.credentials.kubeconfig("nobody")) as forbidden:
        result = await removal(forbidden, order, objects).remove_instance(order)
    assert result.outcome is TasksOutcome.RETRY
    assert 'User "nobody" cannot' in result.reason
