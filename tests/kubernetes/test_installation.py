"""A real cluster is made ready for an installation: version, namespace, anchor."""

import secrets
from collections.abc import AsyncIterator, Mapping

import pytest

from builders.packages import OPERATOR, package_files
from kubernetes.cluster_client import ClusterClient
from kubernetes.control_plane import ControlPlane
from kubernetes.installations import INSTANCE, lending, package_in
from kubernetes.manifests import config_map
from kubernetes.namespaces import Namespace
from temporal_plans.activities.kubernetes.cluster import Cluster, connected
from temporal_plans.activities.packages.installation import InstallationActivities
from temporal_plans.domain.packages.package import Package
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.messages.packages import Preparation, PrepareInstallation

ANCHOR = f"{INSTANCE}-anchor"
MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata:
  name: another
  labels:
    team: {{ .Params.TEAM }}
"""


@pytest.fixture
async def new(cluster: ClusterClient) -> AsyncIterator[Namespace]:
    """A namespace that does not exist yet."""
    made = Namespace(cluster, f"test-{secrets.token_hex(4)}")
    yield made
    await made.delete()


async def prepare(
    own: Cluster, order: PrepareInstallation, templates: Mapping[str, str] | None = None
) -> Preparation:
    async def load(_: str) -> Package:
        operator = f"{OPERATOR}namespaceManifest: namespace.yaml\n"
        return read_files(package_files(operator, templates=templates), "web").package

    activities = InstallationActivities(lending(own), load)
    return await activities.prepare_installation(order)


async def test_the_anchor_is_applied(own: Cluster, namespace: Namespace) -> None:
    order = PrepareInstallation(package=package_in(namespace), kubernetes_version="1.25")
    for _ in range(2):
        assert await prepare(own, order) == Preparation()
    anchor = await namespace.cluster.get("v1", "ConfigMap", ANCHOR, namespace.name)
    assert anchor is not None
    assert anchor["data"] == {"service": INSTANCE}


async def test_a_cluster_that_is_too_old(own: Cluster, namespace: Namespace) -> None:
    order = PrepareInstallation(package=package_in(namespace), kubernetes_version="1.99")
    (problem,) = (await prepare(own, order)).problems
    assert problem.field == "cluster"
    assert problem.problem == "the cluster is older than Kubernetes 1.99, which the package needs"
    assert await namespace.cluster.get("v1", "ConfigMap", ANCHOR, namespace.name) is None


async def test_a_namespace_is_created_only_when_that_is_wanted(
    own: Cluster, new: Namespace
) -> None:
    order = PrepareInstallation(package=package_in(new))
    (problem,) = (await prepare(own, order)).problems
    assert (problem.field, problem.value) == ("namespace", new.name)
    assert await new.cluster.get("v1", "Namespace", new.name) is None

    assert await prepare(own, order.but(create_namespace=True)) == Preparation()
    await new.until("v1", "ServiceAccount", "default", bool)
    assert await new.cluster.get("v1", "ConfigMap", ANCHOR, new.name)


async def test_a_namespace_is_as_its_template_says_and_never_overwritten(
    own: Cluster, new: Namespace
) -> None:
    templates = {"app.yaml": "", "namespace.yaml": MANIFEST}
    order = PrepareInstallation(
        package=package_in(new).but(given={"TEAM": "blue"}),
        namespace_manifest="namespace.yaml",
        create_namespace=True,
    )
    assert await prepare(own, order, templates) == Preparation()
    red = order.but(package=order.package.but(given={"TEAM": "red"}))
    assert await prepare(own, red, templates) == Preparation()
    found = await new.cluster.get("v1", "Namespace", new.name)
    assert found is not None
    assert found["metadata"]["labels"]["team"] == "blue"


async def test_a_manifest_that_gives_something_else(own: Cluster, new: Namespace) -> None:
    order = PrepareInstallation(
        package=package_in(new), namespace_manifest="namespace.yaml", create_namespace=True
    )
    for text, problem in (
        ("", "does not give one Namespace"),
        ("{{ .Params.TEAM }}", "TEAM"),
        ("kind: 3", "is missing"),
    ):
        (reason,) = (await prepare(own, order, {"namespace.yaml": text})).problems
        assert problem in reason.problem
    assert await new.cluster.get("v1", "Namespace", new.name) is None


async def test_a_namespace_that_is_being_deleted(own: Cluster, namespace: Namespace) -> None:
    held = config_map("held")
    held["metadata"]["finalizers"] = ["tests.example/keep"]
    held = await namespace.apply(held)
    await namespace.delete()
    order = PrepareInstallation(package=package_in(namespace), create_namespace=True)
    prepared = await prepare(own, order)
    assert prepared.waits_for.startswith(f"Namespace {namespace.name} is being deleted")
    assert prepared.problems == ()
    await own.merge(held, {"metadata": {"finalizers": []}})


async def test_an_instance_of_another_service_has_the_name(
    own: Cluster, namespace: Namespace
) -> None:
    order = PrepareInstallation(package=package_in(namespace))
    assert await prepare(own, order) == Preparation()
    (problem,) = (
        await prepare(own, order.but(package=order.package.but(service="other")))
    ).problems
    taken = f"the name is taken in the namespace {namespace.name} by the service {INSTANCE}"
    assert (problem.field, problem.problem) == ("instance", taken)


async def test_an_account_without_roles(control_plane: ControlPlane, namespace: Namespace) -> None:
    async with connected(control_plane.credentials.kubeconfig("nobody")) as cluster:
        (problem,) = (
            await prepare(cluster, PrepareInstallation(package=package_in(namespace)))
        ).problems
    assert 'User "nobody" cannot' in problem.problem
    assert "rbac.yaml" in problem.fix


async def test_a_cluster_that_is_down(
    control_plane: ControlPlane, own: Cluster, namespace: Namespace
) -> None:
    await control_plane.server.kill()
    try:
        prepared = await prepare(own, PrepareInstallation(package=package_in(namespace)))
    finally:
        await control_plane.start_server()
    assert "the API server" in prepared.waits_for
    assert prepared.problems == ()
