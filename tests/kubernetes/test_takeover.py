"""Instances that another controller left are taken over, and no pod is restarted."""

import os
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter

from acceptance.programs import Program
from kubernetes.cluster_client import ClusterClient, Object
from kubernetes.control_plane import ControlPlane
from kubernetes.left_behind import HASH, UID, applied, install_definitions, resources
from kubernetes.manifests import config_map
from kubernetes.namespaces import Namespace
from pauses import until
from temporal_plans.activities.kubernetes.cluster import FIELD_MANAGER
from temporal_plans.client.errors import ClusterUnreachable
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.verbs.packages import PackageDeployment
from temporal_plans.domain.plans.status import Status
from temporal_plans.worker.dev import DevServer

COMMAND = Path(sys.executable).parent / "temporal-plan"


@pytest.fixture(scope="module")
async def server() -> AsyncIterator[DevServer]:
    async with DevServer() as server:
        yield server


@pytest.fixture(scope="module")
async def worker(
    server: DevServer, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Program]:
    """The shipped command, for plans and the cluster."""
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    program = Program(
        COMMAND,
        ["worker", "--kubernetes", f"tests={kubeconfig}:local"],
        env={"PATH": os.environ["PATH"], "TEMPORAL_ADDRESS": server.address},
        log=tmp_path_factory.mktemp("takeover") / "worker.log",
    )
    await program.start()
    yield program
    await program.stop()


@pytest.fixture
async def plans(server: DevServer, worker: Program, cluster: ClusterClient) -> PlansClient:
    await install_definitions(cluster)
    client = await Client.connect(server.address, data_converter=pydantic_data_converter)
    return PlansClient(client)


async def left(namespace: Namespace, name: str, **values: str) -> list[Object]:
    """An instance with its objects. Returns those."""

    instance: Object = {}
    for one in resources(name, **values):
        placed = {**one, "metadata": {**one["metadata"], "namespace": namespace.name}}
        await until(partial(namespace.cluster.tried, placed))  # its kind may not be served yet
        instance = await namespace.cluster.apply(placed)
    return await applied(namespace, instance, **values)


async def test_an_update_after_the_import_changes_no_template_of_pods(
    plans: PlansClient, namespace: Namespace
) -> None:
    name = f"s{namespace.name[-8:]}"
    _, before = await left(namespace, name, IMAGE="7")
    await namespace.apply(config_map(f"{name}-foreign"))

    (tried,) = await plans.import_instances("tests", namespace.name, dry_run=True)
    assert (tried.problems, tried.notes) == ((), ())
    assert await plans.content_of(name) == ""
    (one,) = await plans.import_instances("tests", namespace.name)
    assert (one.service, one.package, one.objects, one.parameters) == (name, "shop", 2, 1)
    (again,) = await plans.import_instances("tests", namespace.name)
    assert (again.service, again.present) == (name, True)

    status = await plans.instance(name)
    records = {record.name: record for record in status.plans}
    assert (records["deploy"].status, records["deploy"].run) == (Status.COMPLETE, 1)
    assert (records["update"].run, status.uids["deploy"]) == (0, UID)
    inventory = await plans.inventory(name)
    assert {str(ref) for ref in inventory.objects} == {
        f"ConfigMap {name}-config",
        f"Deployment {name}-server",
    }
    unchanged = await server_of(namespace, name)
    assert unchanged["metadata"]["generation"] == before["metadata"]["generation"]
    assert all(one.get("manager") != FIELD_MANAGER for one in managers(unchanged))

    result = await plans.deploy_package(PackageDeployment(name=name, parameters={"SIZE": "2"}))
    assert result.plan == f"{name}/update"

    after = await until(
        partial(server_of, namespace, name), lambda live: live["spec"]["replicas"] == 2
    )
    assert after["spec"]["template"] == before["spec"]["template"]
    annotations = after["spec"]["template"]["metadata"]["annotations"]
    assert annotations["kudo.dev/dependencies-hash"] == HASH

    changed = PackageDeployment(name=name, parameters={"MODE": "wild"})
    await plans.deploy_package(changed)

    async def replaced() -> bool:
        live = await server_of(namespace, name)
        found = live["spec"]["template"]["metadata"]["annotations"]
        return bool(found["kudo.dev/dependencies-hash"] != HASH)

    await until(replaced)


async def test_a_template_that_would_change_is_named(
    plans: PlansClient, namespace: Namespace
) -> None:
    name = f"t{namespace.name[-8:]}"
    lives = await left(namespace, name)
    container = {"name": "main", "image": "example/main:by-hand"}
    await namespace.cluster.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"{name}-server", "namespace": namespace.name},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }
    )
    (one,) = await plans.import_instances("tests", namespace.name, dry_run=True)
    assert one.notes == (
        f"the next apply would replace pods: Deployment {name}-server: "
        "spec.template.spec.containers[main].image",
    )
    assert len(lives) == 2


async def test_a_name_that_is_taken(plans: PlansClient, namespace: Namespace) -> None:
    other = await Namespace.made(namespace.cluster)
    name = f"u{namespace.name[-8:]}"
    await left(namespace, name)
    await left(other, name)
    (first,) = await plans.import_instances("tests", namespace.name)
    (second,) = await plans.import_instances("tests", other.name)
    assert (first.service, second.service) == (name, f"{other.name}-{name}")
    await other.delete()


async def test_nobody_serves_the_cluster(plans: PlansClient) -> None:
    with pytest.raises(ClusterUnreachable, match="no worker of cluster 'elsewhere'"):
        await plans.import_instances("elsewhere")


async def server_of(namespace: Namespace, name: str) -> Object:
    live = await namespace.cluster.get("apps/v1", "Deployment", f"{name}-server", namespace.name)
    assert live is not None
    return live


def managers(live: Object) -> list[Object]:
    found: list[Object] = live["metadata"]["managedFields"]
    return found
