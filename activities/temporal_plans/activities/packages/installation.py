"""The activity that makes a cluster ready for an installation: version, namespace, anchor."""

import asyncio
from typing import Any, cast

from temporalio import activity

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.packages.access import LoadPackage, UseCluster
from temporal_plans.domain.packages.anchor import anchor_ref, claim_of, claimed
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.removal import why_left
from temporal_plans.domain.packages.versions import is_older
from temporal_plans.domain.values.refusal import Code, Reason, RefusedError, SpecError
from temporal_plans.domain.values.text import shortened
from temporal_plans.loading.packages.contexts import Installation
from temporal_plans.loading.packages.objects import read_objects
from temporal_plans.loading.packages.templates import render
from temporal_plans.messages.packages import InstalledPackage, Preparation, PrepareInstallation

_REASON_LIMIT = 2000
_ACCOUNT_TIMEOUT, _ACCOUNT_PAUSE = 10.0, 0.2
"""Seconds to wait for the service account of a new namespace, without which the API server refuses
pods; a cluster without that controller never makes it."""


class _Wait(Exception):
    """The cluster is not ready now; the text is the reason."""


class InstallationActivities:
    """``use`` lends the cluster whose queue the worker serves."""

    def __init__(self, use: UseCluster, load: LoadPackage) -> None:
        self._use = use
        self._load = load

    @activity.defn
    async def prepare_installation(self, order: PrepareInstallation) -> Preparation:
        """Check the cluster's version, see that there is a namespace, and create the anchor.

        Idempotent. Never raises ClusterError.
        """
        try:
            async with heartbeats(), self._use() as cluster:
                await _check_version(cluster, order.kubernetes_version)
                await self._provide_namespace(cluster, order)
                await _claim_anchor(cluster, order.package, order.installation)
        except _Wait as wait:
            return Preparation(waits_for=shortened(str(wait), _REASON_LIMIT))
        except RefusedError as refused:
            if refused.refusal.code == Code.UNAVAILABLE:
                return Preparation(waits_for=shortened(str(refused), _REASON_LIMIT))
            return Preparation(problems=refused.reasons)
        except ClusterError as error:
            if error.passing:
                return Preparation(waits_for=shortened(str(error), _REASON_LIMIT))
            return Preparation(problems=(_refused_by_cluster(error),))
        return Preparation()

    async def _provide_namespace(self, cluster: Cluster, order: PrepareInstallation) -> None:
        name = order.package.namespace
        wanted = ObjectRef(api_version="v1", kind="Namespace", name=name)
        live = await cluster.get(wanted.manifest)
        if live is None:
            if not order.create_namespace:
                fix = (
                    "create it, then `restart` the step; or uninstall, and deploy with "
                    "--create-namespace"
                )
                problem = "the cluster has no such namespace"
                raise SpecError([Reason(field="namespace", problem=problem, value=name, fix=fix)])
            manifest = await self._namespace(order) or wanted.manifest
            if await cluster.create(manifest):
                await _await_account(cluster, name)
        elif live["metadata"].get("deletionTimestamp"):
            raise _Wait(f"Namespace {name} {why_left(live)}")

    async def _namespace(self, order: PrepareInstallation) -> Object | None:
        """Return the namespace as the package's template says; its name is the order's."""
        key = order.namespace_manifest
        if not key:
            return None
        package = order.package
        loaded = await self._load(package.content)
        context = Installation(
            package=loaded,
            name=package.instance,
            namespace=package.namespace,
            given=package.given,
            secrets=package.secrets,
        ).of_namespace()
        rendered = await asyncio.to_thread(render, {key: loaded.template(key)}, context)
        read = read_objects(rendered[key])
        if read.faults:
            raise SpecError([fault.but(value=None) for fault in read.faults], source=key)
        if [one["kind"] for one in read.objects] != ["Namespace"]:
            raise SpecError([Reason(field=key, problem="does not give one Namespace")])
        manifest = cast(dict[str, Any], dict(read.objects[0]))
        metadata = manifest.get("metadata")
        own = cast(dict[str, Any], metadata) if isinstance(metadata, dict) else {}
        return {**manifest, "metadata": {**own, "name": package.namespace}}


async def _check_version(cluster: Cluster, needed: str) -> None:
    if needed and is_older(found := await cluster.version(), needed):
        problem = f"the cluster is older than Kubernetes {needed}, which the package needs"
        fix = "upgrade the cluster, or install an older version of the package"
        raise SpecError([Reason(field="cluster", problem=problem, value=found, fix=fix)])


async def _await_account(cluster: Cluster, namespace: str) -> None:
    account = ObjectRef(
        api_version="v1", kind="ServiceAccount", namespace=namespace, name="default"
    )
    loop = asyncio.get_running_loop()
    end = loop.time() + _ACCOUNT_TIMEOUT
    while loop.time() < end and await cluster.get(account.manifest) is None:
        await asyncio.sleep(_ACCOUNT_PAUSE)


async def _claim_anchor(cluster: Cluster, package: InstalledPackage, installation: str) -> None:
    """An anchor of another service means that the instance's name is taken. A new one means that
    there is nothing to record but what this installation applies; one that is there keeps its data
    until everything is recorded."""
    ref = anchor_ref(package.instance, package.namespace)
    wanted = claimed(package.instance, package.namespace, package.service, installation)
    while not await cluster.create(wanted):
        live = await cluster.get(ref.manifest)
        if live is None:
            continue  # deleted since
        if live["metadata"].get("deletionTimestamp"):
            raise _Wait(f"{ref} of an earlier installation {why_left(live)}")
        holder = claim_of(live, package.instance)
        if holder is None or holder not in ("", package.service):
            raise SpecError([_taken(package, ref, holder or "")])
        if not holder:
            unrecorded = claimed(package.instance, package.namespace, package.service)
            await cluster.merge(live, {"data": unrecorded["data"]})
        return


def _taken(package: InstalledPackage, ref: ObjectRef, holder: str) -> Reason:
    by = f"the service {holder}" if holder else f"{ref}, which no installation made"
    return Reason(
        field="instance",
        problem=f"the name is taken in the namespace {package.namespace} by {by}",
        value=package.instance,
        fix="choose another name or namespace, or uninstall the other",
    )


def _refused_by_cluster(error: ClusterError) -> Reason:
    fix = "give the worker's account the roles of examples/kubernetes/rbac.yaml"
    return Reason(
        field="cluster",
        problem=shortened(str(error)),
        fix=fix if error.status == 403 else "",
    )
