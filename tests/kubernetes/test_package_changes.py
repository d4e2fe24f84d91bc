"""What changes of small packages make of objects of a real API server, as the system whose packages
these are was tested (docs/packages.md has the list)."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from acceptance.histories import assert_all_replays
from builders.packages import package_files, write_package
from kubernetes.cluster_client import Object
from kubernetes.installed import Installed
from kubernetes.namespaces import Namespace
from kubernetes.package_life import newer
from kubernetes.place import Place
from temporal_plans.domain.plans.status import Status

OPERATOR = """\
apiVersion: kudo.dev/v1beta1
name: web
operatorVersion: "1.0.0"
kubernetesVersion: "1.25"
tasks:
  - {{name: app, kind: Apply, spec: {{resources: [{templates}]}}}}
  - {{name: remove, kind: Delete, spec: {{resources: [{templates}]}}}}
plans:
"""
PLAN = "  {name}: {{phases: [{{name: main, steps: [{{name: main, tasks: [{task}]}}]}}]}}\n"
EMPTY = "  {name}: {{phases: []}}\n"
PARAMETERS = """\
apiVersion: kudo.dev/v1beta1
parameters:
  - {name: VALUE, default: one}
  - {name: SCALE, default: one, trigger: deploy}
"""

CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Name }}
data:
  value: {{ .Params.VALUE }}-{{ .Params.SCALE }}
"""
SERVICE = """\
apiVersion: v1
kind: Service
metadata:
  name: {{ .Name }}
spec:
  selector: {app: "{{ .Params.VALUE }}-{{ .Params.SCALE }}"}
  ports: [{port: 80}]
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Name }}
spec:
  replicas: {{ if eq .Params.VALUE "one" }}2{{ else }}4{{ end }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, scale: "{{ .Params.SCALE }}"}}
    spec:
      containers:
        - {name: main, image: "example/main:1"}
        {{- if eq .Params.VALUE "one" }}
        - {name: second, image: "example/second:1"}
        {{- end }}
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Name }}-{{ .Params.VALUE }}-{{ .Params.SCALE }}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: "example/main:1"}]}
"""
DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.tests.example
  labels: {value: "{{ .Params.VALUE }}-{{ .Params.SCALE }}"}
spec:
  group: tests.example
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
THING = """\
apiVersion: tests.example/v1
kind: Unknown
metadata:
  name: {{ .Name }}-{{ .Params.VALUE }}-{{ .Params.SCALE }}
"""


@pytest.fixture(scope="module", autouse=True)
async def replays(place: Place) -> AsyncIterator[None]:
    yield
    await assert_all_replays(place.server.address)


@pytest.fixture
def installed(place: Place, namespace: Namespace) -> Installed:
    return Installed(place, f"it-{namespace.name}", namespace.name)


def package(folder: Path, templates: Mapping[str, str], **plans: str) -> Path:
    """Write a package whose plans execute the task ``app`` or ``remove``, or nothing."""
    text = OPERATOR.format(templates=", ".join(templates))
    for name, task in plans.items():
        text += (PLAN if task else EMPTY).format(name=name, task=task)
    return write_package(folder / "web", package_files(text, PARAMETERS, templates))


@pytest.mark.parametrize(
    ("plans", "change", "upgrade"),
    [
        (("deploy", "update", "upgrade"), "update", "upgrade"),
        (("deploy", "update"), "update", "update"),
        (("deploy",), "deploy", "deploy"),
    ],
    ids=["own", "fallback-to-update", "fallback-to-deploy"],
)
async def test_which_plan_a_change_and_an_upgrade_run(
    installed: Installed, tmp_path: Path, plans: tuple[str, ...], change: str, upgrade: str
) -> None:
    folder = package(tmp_path, {"app.yaml": CONFIG}, **dict.fromkeys(plans, "app"))
    assert await installed.deployed(folder) == "deploy"
    assert await installed.deployed(parameters={"VALUE": "two"}) == change
    assert await installed.deployed(parameters={"SCALE": "two"}) == "deploy", "its trigger"
    assert await installed.deployed(newer(folder, tmp_path / "newer")) == upgrade


async def test_plans_without_phases_are_complete(installed: Installed, tmp_path: Path) -> None:
    folder = package(tmp_path, {"app.yaml": CONFIG}, deploy="app", update="")
    await installed.deployed(folder)
    assert await installed.deployed(parameters={"VALUE": "two"}) == "update"


def replicas_and_containers(live: Object) -> Any:
    template = live["spec"]["template"]["spec"]
    return live["spec"]["replicas"], [one["name"] for one in template["containers"]]


def value(live: Object) -> Any:
    return live["data"]


def selector(live: Object) -> Any:
    return live["spec"]["selector"], bool(live["spec"]["clusterIP"])


@pytest.mark.parametrize(
    ("template", "version", "kind", "looked", "before", "after"),
    [
        pytest.param(
            CONFIG, "v1", "ConfigMap", value, {"value": "one-one"}, {"value": "two-one"}, id="field"
        ),
        pytest.param(
            SERVICE, "v1", "Service", selector,
            ({"app": "one-one"}, True), ({"app": "two-one"}, True), id="service",
        ),
        pytest.param(
            DEPLOYMENT, "apps/v1", "Deployment", replicas_and_containers,
            (2, ["main", "second"]), (4, ["main"]), id="container-removed",
        ),
    ],
)  # fmt: skip
async def test_a_parameter_changes_an_object(
    installed: Installed, namespace: Namespace, tmp_path: Path,
    template: str, version: str, kind: str, looked: Any, before: Any, after: Any,
) -> None:  # fmt: skip
    await installed.deployed(package(tmp_path, {"folder/app.yaml": template}, deploy="app"))
    first = await namespace.until(version, kind, installed.name, bool)
    assert looked(first) == before
    await installed.deployed(parameters={"VALUE": "two"})
    second = await namespace.until(version, kind, installed.name, bool)
    assert looked(second) == after
    assert second["metadata"]["uid"] == first["metadata"]["uid"], "changed, and not made again"
    address = first["spec"].get("clusterIP") if "spec" in first else None
    assert address is None or second["spec"]["clusterIP"] == address


async def test_an_absent_object_is_deleted(installed: Installed, tmp_path: Path) -> None:
    await installed.deployed(package(tmp_path, {"job.yaml": JOB}, deploy="remove", update="app"))
    await installed.deployed(parameters={"SCALE": "two"})


async def test_a_definition_that_is_there_already(installed: Installed, tmp_path: Path) -> None:
    folder = package(tmp_path, {"definition.yaml": DEFINITION}, deploy="app")
    await installed.deployed(folder)
    await installed.deployed(parameters={"VALUE": "two"})
    await installed.uninstall()


async def test_an_object_of_an_unknown_kind(installed: Installed, tmp_path: Path) -> None:
    folder = package(tmp_path, {"thing.yaml": THING}, deploy="app")
    await installed.deploy(folder)
    await installed.until_status("deploy", Status.ERROR)
    view = await installed.view("deploy")
    assert "Unknown" in view.phases[0].steps[0].message
