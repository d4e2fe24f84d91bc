"""The roles of ``examples/kubernetes`` are what the worker of a cluster needs, and no more."""

import secrets
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import cast

import pytest
import yaml
from temporalio.client import Client

from kubernetes.cluster_client import ClusterClient, Object
from kubernetes.control_plane import ControlPlane
from kubernetes.installations import client_with
from kubernetes.manifests import config_map, deployment, job, stateful_set
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import Steps
from pauses import until
from repository import ROOT
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.kubernetes.pod_command import Container
from temporal_plans.activities.mechanics.secrets import SecretLookup
from temporal_plans.activities.packages.installation import InstallationActivities
from temporal_plans.activities.packages.observation import ObservationActivities
from temporal_plans.activities.packages.package_cache import PackageCache
from temporal_plans.activities.packages.preview import PreviewActivities
from temporal_plans.activities.packages.removal import RemovalActivities
from temporal_plans.domain.packages.object_preview import PreviewAction
from temporal_plans.messages.packages import (
    LookAtObjects,
    Preparation,
    PrepareInstallation,
    PreviewObjects,
    RemovalInput,
    TasksOutcome,
)
from temporal_plans.worker.control_plane.stages import PodFate

FOLDER = ROOT / "examples" / "kubernetes"
HOME, ACCOUNT, ROLE = "temporal-plans", "worker", "temporal-plans-packages"
NONE = SecretLookup([])
RBAC = "rbac.authorization.k8s.io/v1"


def manifests(*names: str) -> Sequence[Object]:
    return [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text())]


@pytest.fixture
async def worker(
    control_plane: ControlPlane, cluster: ClusterClient
) -> AsyncIterator[ClusterConnection]:
    """A connection with the service account's token and the roles of rbac.yaml."""
    await cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    for one in manifests("rbac.yaml"):
        await cluster.apply(one)

    async def role() -> Object:
        return await cluster.get(RBAC, "ClusterRole", ROLE) or {}

    await until(role, lambda one: one.get("rules"))
    token = await cluster.token(HOME, ACCOUNT)
    kubeconfig = control_plane.credentials.kubeconfig_of(ACCOUNT, token)
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        yield connection


@pytest.fixture
async def new(cluster: ClusterClient) -> AsyncIterator[Namespace]:
    """A namespace that does not exist yet."""
    made = Namespace(cluster, f"test-{secrets.token_hex(4)}")
    yield made
    await made.delete()


async def test_every_activity_has_what_it_needs(worker: ClusterConnection, new: Namespace) -> None:
    steps = Steps(worker, new.name)
    secret: Object = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "secret"},
        "stringData": {"key": "value"},
    }
    order = steps.apply(
        config_map("settings"), secret, deployment("app"), stateful_set("db", storage="1Gi"),
        job("once"), deployment("bad", fate=PodFate.CRASH),
    )  # fmt: skip
    package = order.run.package
    load = PackageCache(steps.contents).get
    installation = InstallationActivities(worker.use, load)
    prepare = PrepareInstallation(package=package, kubernetes_version="1.25", create_namespace=True)
    assert await installation.prepare_installation(prepare) == Preparation()

    result = await steps.execute(order)
    while "Deployment bad" not in result.reason:
        assert result.outcome is TasksOutcome.WAITING, result
        result = await steps.execute(order.but(shown=result.reason))

    refs = list(steps.owner.recorded[-1].objects)
    client = client_with(package, refs)
    observation = ObservationActivities(client, worker.use, NONE)
    look = LookAtObjects(owner="service/one", package=package, notable=True)
    report = await until(
        lambda: observation.look_at_objects(look),
        lambda found: [one.ref.name for one in found.objects if one.events] == ["bad"],
    )
    assert "CrashLoopBackOff" in report.objects[0].pods[0]

    (pod,) = await new.until_pods("app=app", lambda pods: len(pods) == 1)
    async with worker.use() as cluster:
        container = Container(new.name, pod["metadata"]["name"], "main")
        assert (await cluster.execute(container, ["true"], limit=100)).code == 0

    preview = PreviewActivities(cast(Client, None), load, worker.use, NONE)
    planned = await preview.preview_objects(PreviewObjects(after=package, plan="deploy"))
    assert planned.counts == {PreviewAction.UNCHANGED: 6}

    removal = RemovalActivities(client, worker.use)
    remove = RemovalInput(owner="service/one", package=package, volumes=True)
    await until(
        lambda: removal.remove_instance(remove), lambda found: found.outcome is TasksOutcome.DONE
    )
    await new.until("v1", "PersistentVolumeClaim", "data-db-0", lambda found: found is None)


async def test_the_worker_may_do_no_more(worker: ClusterConnection, namespace: Namespace) -> None:
    more = [one["metadata"]["name"] for one in manifests("rbac-roles.yaml", "rbac-cluster.yaml")]
    role = {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": namespace.name}}
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.name}}
    async with worker.use() as cluster:
        for request in (
            cluster.apply(role),
            cluster.apply(place),
            cluster.delete(place),
            cluster.find("v1", "Node"),
            cluster.find("v1", "Namespace"),
        ):
            with pytest.raises(ClusterError, match=r"\(403\)"):
                await request
    assert more == ["temporal-plans-roles", "temporal-plans-cluster-objects"]


async def test_roles_of_packages_need_the_optional_rules(
    worker: ClusterConnection, namespace: Namespace
) -> None:
    reader = {
        "apiVersion": RBAC,
        "kind": "Role",
        "metadata": {"name": "reader", "namespace": namespace.name},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
    }
    greedy = {**reader, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
    scoped = {
        "apiVersion": RBAC,
        "kind": "ClusterRole",
        "metadata": {"name": f"{namespace.name}-reader"},
        "rules": reader["rules"],
    }
    optional = manifests("rbac-roles.yaml", "rbac-cluster.yaml")
    async with worker.use() as cluster:
        for manifest in (reader, scoped):
            with pytest.raises(ClusterError, match=r"\(403\)"):
                await cluster.apply(manifest)
        for one in optional:
            await namespace.cluster.apply(one)

        async def allowed(manifest: Object) -> bool:
            try:
                await cluster.apply(manifest)
            except ClusterError as error:
                if error.status != 403:
                    raise
                return False
            return True

        try:
            for manifest in (reader, scoped):
                await until(partial(allowed, manifest))
            with pytest.raises(ClusterError, match="attempting to grant RBAC permissions"):
                await cluster.apply(greedy)
            await cluster.delete(scoped)
        finally:
            for one in optional:
                await namespace.cluster.delete(RBAC, "ClusterRole", one["metadata"]["name"])
