"""Packages are installed, changed, upgraded, rolled back and uninstalled on a real API server, by
the shipped worker."""

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.dynamic.exceptions import ResourceNotFoundError

from acceptance.histories import assert_all_replays
from builders.packages import OPERATOR, TEMPLATE, package_files, write_package
from kubernetes.cluster_client import Object
from kubernetes.control_plane import ControlPlane
from kubernetes.installed import Installed
from kubernetes.namespaces import Namespace
from kubernetes.package_life import Life, live
from kubernetes.place import Place
from pauses import until
from temporal_plans.domain.plans.status import Status

ROOT = Path(__file__).parents[2]
CORPUS = Path(os.environ.get("TEMPORAL_PLANS_CORPUS", ROOT / "../shared/corpus")) / "kudo"
STORE = ROOT / "examples" / "packages" / "store"
QUEUE = Path(__file__).with_name("queue")

NOT_ALLOWED = frozenset({"not-allowed"})

OWN = {
    "store": Life(
        STORE,
        {
            "update": {"MEMORY": "512Mi"},
            "metrics": {"METRICS": "true"},
            "backup": {"BACKUP": "nightly"},
            "restore": {"RESTORE": "nightly"},
        },
        upgrade="upgrade",
        starts=("backup", "restore"),
        files=("/generated/password", "/checksum/backup"),
        claims=("data-{name}-0", "data-{name}-1", "data-{name}-2"),
    ),
    "queue": Life(
        QUEUE,
        {
            "deploy": {"NODES": "3"},
            "settings": {"LENGTH": "2000000"},
            "not-allowed": {"DISK_SIZE": "6Gi"},
        },
        guarding=NOT_ALLOWED,
        endless=NOT_ALLOWED,
        claims=tuple(f"data-{{name}}-queue-{number}" for number in range(3)),
    ),
}
FOUND = {
    "cowsay": Life(CORPUS / "cowsay", {"deploy": {"replicas": "2"}}, files=("/tmp/index.html",)),
    "first-operator": Life(CORPUS / "first-operator", {"deploy": {"replicas": "4"}}),
    "kafka": Life(
        CORPUS / "kafka",
        {
            "update-instance": {"BROKER_MEM": "1024Mi"},
            "service-monitor": {"ADD_SERVICE_MONITOR": "true"},
            "external-access": {"EXTERNAL_ADVERTISED_LISTENER": "true"},
            "mirrormaker": {"MIRROR_MAKER_ENABLED": "true"},
            "kafka-connect": {"KAFKA_CONNECT_ENABLED": "true"},
            "cruise-control": {"ENABLE_CRUISE_CONTROL": "true"},
            "user-workload": {"RUN_USER_WORKLOAD": "true"},
            "not-allowed": {"DISK_SIZE": "6Gi"},
            "deploy": {"COMPRESSION_TYPE": "gzip"},
        },
        guarding=NOT_ALLOWED,
        files=("/tmp/tls.key", "/tmp/tls.crt"),
        claims=tuple(f"{{name}}-datadir-{{name}}-kafka-{number}" for number in range(3)),
    ),
    "mysql": Life(
        CORPUS / "mysql",
        {
            "deploy": {"PASSWORD": "another"},
            "backup": {"BACKUP_FILE": "nightly.sql"},
            "restore": {"RESTORE_FILE": "nightly.sql"},
        },
        starts=("backup", "restore"),
    ),
    "rabbitmq": Life(
        CORPUS / "rabbitmq",
        {"deploy": {"MEMORY": "256Mi"}, "not-allowed": {"DISK_SIZE": "2Gi"}},
        guarding=NOT_ALLOWED,
        endless=NOT_ALLOWED,
        claims=tuple(f"data-{{name}}-rabbitmq-{number}" for number in range(3)),
    ),
    "zookeeper": Life(
        CORPUS / "zookeeper",
        {"deploy": {"MEMORY": "512Mi"}, "not-allowed": {"DISK_SIZE": "6Gi"}},
        guarding=NOT_ALLOWED,
        endless=NOT_ALLOWED,
        starts=("validation",),
        claims=tuple(f"{{name}}-datadir-{{name}}-zookeeper-{number}" for number in range(3)),
    ),
}

SERVICE_MONITOR: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "servicemonitors.monitoring.coreos.com"},
    "spec": {
        "group": "monitoring.coreos.com",
        "names": {
            "kind": "ServiceMonitor",
            "listKind": "ServiceMonitorList",
            "plural": "servicemonitors",
            "singular": "servicemonitor",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                    }
                },
            }
        ],
    },
}
"""Without rules for its objects: whether they make sense is not what is tried here."""


@pytest.fixture(scope="module", autouse=True)
async def replays(place: Place) -> AsyncIterator[None]:
    """When all is over, everything that happened here replays."""
    yield
    await assert_all_replays(place.server.address)


@pytest.fixture
def installed(place: Place, namespace: Namespace, request: pytest.FixtureRequest) -> Installed:
    return Installed(place, f"it-{namespace.name}", namespace.name)


@pytest.mark.parametrize("life", OWN.values(), ids=OWN)
async def test_our_packages(place: Place, installed: Installed, life: Life, tmp_path: Path) -> None:
    await live(place, installed, life, tmp_path)


@pytest.fixture(scope="module")
async def monitors(control_plane: ControlPlane) -> AsyncIterator[None]:
    """The kind ServiceMonitor, which a package needs and does not bring."""
    async with control_plane.client() as cluster:
        await cluster.apply(SERVICE_MONITOR)

        async def served() -> bool:
            with suppress(ApiException, ResourceNotFoundError):
                return await cluster.list("monitoring.coreos.com/v1", "ServiceMonitor", "") == []
            return False

        await until(served)
        yield
        name = SERVICE_MONITOR["metadata"]["name"]
        await cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here (TEMPORAL_PLANS_CORPUS)")
@pytest.mark.parametrize("life", FOUND.values(), ids=FOUND)
async def test_packages_from_the_field(
    place: Place, installed: Installed, monitors: None, life: Life, tmp_path: Path
) -> None:
    await live(place, installed, life, tmp_path)


GATED = """\
name: web
operatorVersion: "1.0.0"
kubernetesVersion: "1.25"
tasks:
  - {name: app, kind: Apply, spec: {resources: [app.yaml]}}
  - {name: late, kind: Apply, spec: {resources: [late.yaml]}}
plans:
  deploy:
    strategy: serial
    phases:
      - name: main
        strategy: {name: canary, proceeds: 1}
        steps: [{name: app, tasks: [app]}]
      - name: check
        strategy: serial
        steps:
          - {name: ask, approval: does it answer?}
          - {name: late, tasks: [late]}
"""


async def test_gates_and_questions_by_commands(
    place: Place, namespace: Namespace, tmp_path: Path
) -> None:
    name = f"it-{namespace.name}"
    late = TEMPLATE.replace("{{ .Name }}", "{{ .Name }}-late")
    files = package_files(GATED, templates={"app.yaml": TEMPLATE, "late.yaml": late})
    folder = str(write_package(tmp_path / "web", files))
    await place.command("deploy", folder, "-s", name, "--kube-namespace", namespace.name)
    plan = Installed(place, name, namespace.name)
    await plan.until_status("deploy", Status.WAITING)
    assert await namespace.cluster.get("v1", "ConfigMap", name, namespace.name) is None
    await place.command("continue", "deploy", "main", "-s", name)
    await namespace.until("v1", "ConfigMap", name, bool)

    async def text() -> str:
        return (await place.command("show", "deploy", "-s", name)).out

    await until(text, lambda shown: "waits for approval: does it answer?" in shown)
    assert await namespace.cluster.get("v1", "ConfigMap", f"{name}-late", namespace.name) is None
    refused = await place.command("start", "deploy", "-s", name, "-p", "NONE=1", code=1)
    assert "NONE" in refused.err
    await place.command("continue", "deploy", "check", "ask", "-s", name)
    await plan.until_complete("deploy")
    await namespace.until("v1", "ConfigMap", f"{name}-late", bool)
    await place.command("uninstall", "-s", name, "--yes", "--wait")


async def test_values_of_a_file_by_commands(
    place: Place, namespace: Namespace, tmp_path: Path
) -> None:
    """Numbers exactly, lists and mappings as templates see them, the command line last."""
    name = f"it-{namespace.name}"
    parameters = """\
parameters:
  - {name: SIZE, default: "3"}
  - {name: LIMIT, type: integer, default: "1"}
  - {name: HOSTS, type: array, default: []}
  - {name: LABELS, type: map, default: {}}
"""
    template = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
data:
  size: "{{ .Params.SIZE }}"
  limit: "{{ .Params.LIMIT }}"
  hosts: "{{ range .Params.HOSTS }}{{ .name }},{{ end }}"
  labels: "{{ range $key, $value := .Params.LABELS }}{{ $key }}={{ $value }},{{ end }}"
"""
    files = package_files(OPERATOR, parameters, {"app.yaml": template})
    folder = str(write_package(tmp_path / "web", files))
    values = tmp_path / "values.yaml"
    values.write_text(
        "SIZE: 4\nLIMIT: 9007199254740993\nHOSTS: [{name: a}, {name: b}]\nLABELS: {x: z}\n"
    )
    where = ("-s", name, "--kube-namespace", namespace.name, "--parameter-file", str(values))
    await place.command("deploy", folder, *where, "-p", "SIZE=5", "--wait")
    found = await namespace.until("v1", "ConfigMap", name, bool)
    assert found["data"] == {
        "size": "5",
        "limit": "9007199254740993",
        "hosts": "a,b,",
        "labels": "x=z,",
    }
    values.write_text("NONE: 1\nSIZE:\n")
    refused = await place.command("deploy", "-s", name, "--parameter-file", str(values), code=1)
    assert "SIZE: is null" in refused.err
    values.write_text("NONE: 1\nLIMIT: many\n")
    refused = await place.command("deploy", "-s", name, "--parameter-file", str(values), code=1)
    assert "NONE" in refused.err, "all reasons at once"
    assert "LIMIT" in refused.err
    await place.command("uninstall", "-s", name, "--yes", "--wait")


async def test_by_commands(place: Place, namespace: Namespace, tmp_path: Path) -> None:
    """As people do it."""
    name = f"it-{namespace.name}"
    folder = str(write_package(tmp_path / "web"))
    where = ("--kube-namespace", namespace.name)
    await place.command("deploy", folder, "-s", name, *where, "--wait")
    found = await namespace.until("v1", "ConfigMap", name, bool)
    assert found["data"] == {"size": "3"}
    await place.command("deploy", "-s", name, "-p", "SIZE=5", "--wait")
    found = await namespace.until("v1", "ConfigMap", name, bool)
    assert found["data"] == {"size": "5"}
    await place.command("uninstall", "-s", name, "--yes", "--wait")
    assert await namespace.cluster.get("v1", "ConfigMap", name, namespace.name) is None
