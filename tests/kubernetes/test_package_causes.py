"""What people are told when something in the cluster is in the way of an installed package: while a
plan runs by the status and the cause of its step, without one by readiness, ``show`` and ``list``,
and each time by ``explain``, which says what to do."""

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from acceptance.histories import assert_all_replays
from acceptance.programs import Program
from builders.packages import package_files, write_package
from kubernetes.cluster_client import Object
from kubernetes.control_plane import ControlPlane
from kubernetes.installed import Installed
from kubernetes.manifests import DEFINITION, config_map, deployment, job
from kubernetes.namespaces import Namespace
from kubernetes.place import COMMAND, Place
from kubernetes.told import told_of_objects, told_of_plan, until_readiness
from kubernetes.webhooks import refusing_webhook
from pauses import until
from temporal_plans.domain.packages.installation import Switches
from temporal_plans.domain.packages.readiness import Ready, ReadyReason
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status
from temporal_plans.worker.control_plane.stages import LABEL, PodFate

SETTINGS = Switches(look_interval=timedelta(seconds=1))
OPERATOR = {
    "name": "web",
    "operatorVersion": "1.0.0",
    "kubernetesVersion": "1.25",
    "tasks": [{"name": "app", "kind": "Apply", "spec": {"resources": ["app.yaml"]}}],
    "plans": {
        "deploy": {
            "strategy": "serial",
            "phases": [
                {
                    "name": "main",
                    "strategy": "serial",
                    "steps": [{"name": "app", "tasks": ["app"]}],
                }
            ],
        }
    },
}
SECRET: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}}


@pytest.fixture(scope="module", autouse=True)
async def replays(place: Place) -> AsyncIterator[None]:
    yield
    await assert_all_replays(place.server.address)


Deploy = Callable[..., Any]


class World:
    """A namespace, and a package that is installed in it."""

    def __init__(self, installed: Installed, namespace: Namespace, folder: Path) -> None:
        self.installed = installed
        self.namespace = namespace
        self._folder = folder

    async def begin(self, *objects: Object) -> None:
        """Begin the installation of a package with these objects."""
        text = "\n---\n".join(map(json.dumps, objects))
        files = package_files(json.dumps(OPERATOR), "parameters: []", {"app.yaml": text})
        await self.installed.deploy(write_package(self._folder / "web", files))

    async def install(self, *objects: Object) -> None:
        """Install it, and wait until it is ready."""
        await self.begin(*objects)
        await self.installed.until_complete("deploy")
        await self.installed.until_ready()

    async def restart(self) -> None:
        """Restart the plan, which is in ERROR, and wait until it is COMPLETE."""
        await self.installed.order("deploy", Verb.RESTART)
        await self.installed.until_status("deploy", Status.COMPLETE)

    async def until_ready(self) -> None:
        await until_readiness(
            self.installed, lambda one: one.status is Ready.TRUE and not one.message
        )

    async def change(self, version: str, kind: str, name: str, **content: Any) -> None:
        """Change an object, as people do with kubectl."""
        metadata = {"name": name, **content.pop("metadata", {})}
        await self.namespace.apply(
            {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
        )

    async def pods(self, labels: str) -> Sequence[Object]:
        return await self.namespace.cluster.list("v1", "Pod", self.namespace.name, labels)

    async def delete(self, version: str, kind: str, name: str) -> None:
        await self.namespace.cluster.delete(version, kind, name, self.namespace.name)

    async def delete_pods(self, labels: str) -> None:
        for pod in await self.pods(labels):
            await self.delete("v1", "Pod", pod["metadata"]["name"])


@pytest.fixture
async def world(place: Place, namespace: Namespace, tmp_path: Path) -> AsyncIterator[World]:
    """It is uninstalled at the end, whatever is wrong with it."""
    installed = Installed(place, f"it-{namespace.name}", namespace.name, settings=SETTINGS)
    yield World(installed, namespace, tmp_path)
    if await (await place.client()).content_of(installed.name):
        await installed.uninstall()


# --- an object changed by hand --------------------------------------------------------------------


async def test_an_object_changed_by_hand(world: World) -> None:
    await world.install(config_map("settings", size="3"), config_map("more"))
    await world.change("v1", "ConfigMap", "settings", data={"size": "4"})
    found = await told_of_objects(
        world.installed,
        "ConfigMap settings (data.size (by tests))",
        "`start deploy` to undo it",
        explained="ConfigMap settings: others have changed it since it was applied: data.size",
    )
    assert (found.status, found.reason) == (Ready.TRUE, ReadyReason.RESOURCES_READY)
    await world.delete("v1", "ConfigMap", "more")
    found = await told_of_objects(
        world.installed, "ConfigMap more: it is not in the cluster", "`start deploy` applies it"
    )
    assert found.reason is ReadyReason.RESOURCE_NOT_READY
    await world.installed.start("deploy")
    await world.until_ready()


async def test_an_object_deleted_by_hand_while_a_plan_waits_for_it(world: World) -> None:
    await world.begin(deployment("app", fate=PodFate.HANG))
    one = await told_of_plan(world.installed, Status.STARTED, "0 of 1 replicas are available", "")
    assert one.cause is Cause.READINESS
    first = await world.namespace.until("apps/v1", "Deployment", "app", bool)
    await world.delete("apps/v1", "Deployment", "app")

    def another(live: Object | None) -> bool:
        return live is not None and live["metadata"]["uid"] != first["metadata"]["uid"]

    await world.namespace.until("apps/v1", "Deployment", "app", another)


# --- an object that belongs to another ------------------------------------------------------------


async def test_an_object_of_another(world: World) -> None:
    taken = config_map("settings")
    taken["metadata"]["labels"] = {"kudo.dev/instance": "other"}
    await world.namespace.apply(taken)
    await world.begin(config_map("settings"))
    fix = "uninstall the one or the other"
    one = await told_of_plan(world.installed, Status.ERROR, "it belongs to the instance other", fix)
    assert one.cause is Cause.ERROR
    await world.delete("v1", "ConfigMap", "settings")
    await world.restart()
    await world.installed.until_ready()
    await world.change(
        "v1", "ConfigMap", "settings", metadata={"labels": {"kudo.dev/instance": "other"}}
    )
    found = await told_of_objects(world.installed, "it belongs to the instance other", fix)
    assert found.reason is ReadyReason.RESOURCE_NOT_READY


# --- a pod that crash-loops -----------------------------------------------------------------------


async def test_a_pod_that_crashes_while_a_plan_waits(world: World) -> None:
    await world.begin(deployment("app", fate=PodFate.CRASH))
    one = await told_of_plan(
        world.installed, Status.STARTED, "main: CrashLoopBackOff", "read the pod's logs"
    )
    assert one.cause is Cause.READINESS
    assert "0 of 1 replicas are available" in one.text


async def test_a_pod_that_crashes_later(world: World) -> None:
    await world.install(deployment("app"))
    (pod,) = await world.pods("app=app")
    name = pod["metadata"]["name"]
    await world.change("v1", "Pod", name, metadata={"labels": {LABEL: PodFate.CRASH.value}})
    await told_of_objects(world.installed, "0 of 1 replicas are available", "read the pod's logs")


# --- a Job that fails -----------------------------------------------------------------------------


async def test_a_job_that_fails(world: World) -> None:
    await world.begin(job("once", fate=PodFate.FAIL))
    fix = "read the logs of its pod"
    one = await told_of_plan(world.installed, Status.ERROR, "the Job failed", fix)
    assert one.cause is Cause.ERROR
    reason = ReadyReason.PLAN_IN_FATAL_ERROR
    await until_readiness(world.installed, lambda found: found.reason is reason)
    listed = await world.installed.place.command("list", "-s", world.installed.name)
    assert "main/app failed" in listed.out


# --- a webhook that refuses -----------------------------------------------------------------------


async def test_a_webhook_that_refuses_an_object(world: World) -> None:
    async with refusing_webhook(world.namespace, "secrets") as configuration:
        await world.namespace.cluster.apply(configuration)
        await until(lambda: _is_refused(world, SECRET))
        await world.begin(SECRET)
        one = await told_of_plan(
            world.installed,
            Status.ERROR,
            "they are forbidden on Sundays",
            "change the object as the policy says",
        )
    assert one.cause is Cause.ERROR


async def test_a_webhook_that_refuses_pods_later(world: World) -> None:
    await world.install(deployment("app"))
    async with refusing_webhook(world.namespace, "pods") as configuration:
        await world.namespace.cluster.apply(configuration)
        pod: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}}
        await until(lambda: _is_refused(world, {**pod, "spec": _spec()}))
        await world.delete_pods("app=app")
        await told_of_objects(
            world.installed, "they are forbidden on Sundays", "change the object as the policy says"
        )


def _spec() -> Mapping[str, Any]:
    return {"containers": [{"name": "main", "image": "example/main:1"}]}


async def _is_refused(world: World, manifest: Object) -> bool:
    metadata = {**manifest["metadata"], "name": "probe", "namespace": world.namespace.name}
    try:
        return await world.namespace.cluster.tried({**manifest, "metadata": metadata}) is None
    except Exception as error:
        return "Sundays" in str(error)


# --- a full quota ---------------------------------------------------------------------------------


def quota(resource: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": {"hard": {resource: "0"}},
    }


async def test_a_full_quota(world: World) -> None:
    await world.namespace.apply(quota("count/secrets"))
    await world.namespace.until("v1", "ResourceQuota", "full", lambda one: one.get("status"))
    await world.begin(SECRET)
    one = await told_of_plan(
        world.installed, Status.DELAYED, "exceeded quota: full", "raise the quota"
    )
    assert one.cause is Cause.BACKOFF
    await world.delete("v1", "ResourceQuota", "full")
    await world.installed.until_complete("deploy")


async def test_a_quota_that_is_full_later(world: World) -> None:
    await world.install(deployment("app"))
    await world.namespace.apply(quota("pods"))
    await world.namespace.until("v1", "ResourceQuota", "full", lambda one: one.get("status"))
    await world.delete_pods("app=app")
    await told_of_objects(world.installed, "exceeded quota: full", "raise the quota")


# --- a missing definition -------------------------------------------------------------------------


def definition(group: str) -> Object:
    made: Object = json.loads(json.dumps(DEFINITION))
    made["metadata"]["name"] = f"things.{group}"
    made["spec"]["group"] = group
    return made


async def test_a_missing_definition(world: World) -> None:
    group = f"{world.namespace.name}.example"
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "it"}}
    await world.begin(thing)
    fix = "apply the CustomResourceDefinition"
    one = await told_of_plan(world.installed, Status.ERROR, "the cluster has no such kind", fix)
    assert one.cause is Cause.ERROR
    await world.namespace.cluster.apply(definition(group))
    await until(lambda: _is_served(world, thing))
    await world.restart()
    await world.installed.until_ready()
    version, kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
    await world.namespace.cluster.delete(version, kind, f"things.{group}")
    found = await told_of_objects(world.installed, "the cluster has no such kind", fix)
    assert found.reason is ReadyReason.RESOURCE_NOT_READY


async def _is_served(world: World, manifest: Object) -> bool:
    metadata = {**manifest["metadata"], "namespace": world.namespace.name}
    try:
        return await world.namespace.cluster.tried({**manifest, "metadata": metadata}) is not None
    except Exception:
        return False


# --- an expired credential ------------------------------------------------------------------------


class Account:
    """A service account that may do everything, with a token for a worker."""

    def __init__(self, plane: ControlPlane, namespace: Namespace) -> None:
        self._plane = plane
        self._namespace = namespace

    async def renew(self) -> Path:
        """Make the account and a token, and write the token into the kubeconfig."""
        account: Object = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "worker"},
        }
        await self._namespace.apply(account)
        name = self._namespace.name
        subject = {"kind": "ServiceAccount", "name": "worker", "namespace": name}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
        await self._namespace.cluster.apply(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "subjects": [subject],
                "roleRef": {**role, "name": "cluster-admin"},
            }
        )
        token = await self._namespace.cluster.token(name, "worker")
        return self._plane.credentials.kubeconfig_of(name, token)

    async def expire(self) -> None:
        """Make the token invalid."""
        name = self._namespace.name
        await self._namespace.cluster.delete("v1", "ServiceAccount", "worker", name)

    async def remove(self) -> None:
        version, kind = "rbac.authorization.k8s.io/v1", "ClusterRoleBinding"
        await self._namespace.cluster.delete(version, kind, self._namespace.name)


@pytest.fixture
async def account(control_plane: ControlPlane, namespace: Namespace) -> AsyncIterator[Account]:
    account = Account(control_plane, namespace)
    yield account
    await account.remove()


@pytest.fixture
async def brief(
    place: Place, namespace: Namespace, account: Account, tmp_path: Path
) -> AsyncIterator[Installed]:
    """A package in a cluster ``brief``, whose worker has a token that may expire."""
    name = f"brief-{namespace.name}"
    worker = Program(
        COMMAND,
        ["worker", "--kubernetes", f"{name}={await account.renew()}", "--kubernetes-only"],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TEMPORAL_ADDRESS": place.server.address,
        },
        log=tmp_path / "worker.log",
    )
    await worker.start()
    service = f"it-{namespace.name}"
    yield Installed(place, service, namespace.name, cluster=name, settings=SETTINGS)
    await account.renew()
    if await (await place.client()).content_of(service):
        await Installed(place, service, namespace.name).uninstall()
    await worker.stop()


async def test_an_expired_credential(
    brief: Installed, account: Account, namespace: Namespace, tmp_path: Path
) -> None:
    world = World(brief, namespace, tmp_path)
    await world.install(config_map("settings"))
    await account.expire()
    fix = "renew the credentials of the cluster's worker"
    found = await told_of_objects(brief, "Unauthorized (401)", fix)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.RESOURCES_UNKNOWN)
    await brief.order("deploy", Verb.START)
    one = await told_of_plan(brief, Status.DELAYED, "Unauthorized (401)", fix)
    assert one.cause is Cause.BACKOFF
    await account.renew()
    await brief.until_complete("deploy", runs=2)
    await world.until_ready()


# --- a namespace that is being deleted ------------------------------------------------------------


async def test_a_namespace_that_is_being_deleted(world: World) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["tests.example/held"]
    await world.install(config_map("settings"))
    await world.namespace.apply(held)
    await world.namespace.delete()
    try:
        fix = "wait until the namespace is gone"
        about = f"Namespace {world.namespace.name} is being deleted"
        await told_of_objects(world.installed, about, fix)
        await world.installed.order("deploy", Verb.START)
        one = await told_of_plan(world.installed, Status.DELAYED, "is being deleted", fix)
        assert one.cause is Cause.BACKOFF
    finally:
        await world.change("v1", "ConfigMap", "held", metadata={"finalizers": []})
