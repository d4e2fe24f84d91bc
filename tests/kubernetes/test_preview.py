"""What a plan would change is tried on a real API server, and nothing is changed by that."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast

import pytest
from temporalio.client import Client

from kubernetes.control_plane import ControlPlane
from kubernetes.installations import lending
from kubernetes.manifests import config_map, deployment, job
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import Steps, task
from pauses import until
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.mechanics.secrets import EnvironmentSecrets, SecretLookup
from temporal_plans.activities.packages.package_cache import PackageCache
from temporal_plans.activities.packages.preview import PreviewActivities
from temporal_plans.domain.packages.object_preview import (
    FieldDifference,
    ObjectPreview,
    PreviewAction,
)
from temporal_plans.messages.packages import (
    InstalledPackage,
    ObjectsPreview,
    PreviewObjects,
    TasksOutcome,
)

SECRETS = {"OLD": "first secret", "NEW": 'second "secret"\nof two lines'}

PARAMETERS = [
    {"name": "KEY", "default": "1"},
    {"name": "PASSWORD", "default": "none"},
    {"name": "EXTRA", "default": "true"},
]
SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {key: "{{ .Params.KEY }}"}
"""
SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {password: {{ .Params.PASSWORD | quote }}}
"""
APP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - name: main
        image: example/main:1
        envFrom: [{configMapRef: {name: settings}}]
        env: [{name: PASSWORD, value: {{ .Params.PASSWORD | quote }}}]
"""
TEMPLATES: dict[str, str | Sequence[Object]] = {
    "settings.yaml": SETTINGS,
    "secret.yaml": SECRET,
    "app.yaml": APP,
    "extra.yaml": [config_map("extra")],
}
TASKS = [
    task("Apply", "all", resources=["settings.yaml", "secret.yaml", "app.yaml"]),
    task("Toggle", "extra", parameter="EXTRA", resources=["extra.yaml"]),
]


class Previewed:
    """A package in a namespace, and what its plan ``deploy`` would change."""

    def __init__(self, own: Cluster, connection: ClusterConnection, namespace: str) -> None:
        self.steps = Steps(connection, namespace, secrets=SECRETS)
        self._activities = PreviewActivities(
            cast(Client, None),
            PackageCache(self.steps.contents).get,
            lending(own),
            SecretLookup([EnvironmentSecrets("", SECRETS)]),
        )

    async def install(self, package: InstalledPackage) -> None:
        """Execute the tasks of the package until they are done."""
        order = self.steps.order(TASKS, TEMPLATES, parameters=PARAMETERS)
        order = order.but(run=order.run.but(package=package))

        async def done() -> bool:
            result = await self.steps.execute(order)
            assert result.outcome in (TasksOutcome.DONE, TasksOutcome.WAITING), result
            return result.outcome is TasksOutcome.DONE

        await until(done)

    def package(
        self,
        templates: Mapping[str, str | Sequence[Object]] | None = None,
        tasks: Sequence[Mapping[str, Any]] = TASKS,
        **installed: Any,
    ) -> InstalledPackage:
        order = self.steps.order(
            tasks, {**TEMPLATES, **(templates or {})}, parameters=PARAMETERS, **installed
        )
        return order.run.package

    async def preview(
        self, after: InstalledPackage, before: InstalledPackage | None = None
    ) -> ObjectsPreview:
        order = PreviewObjects(before=before, after=after, plan="deploy")
        return await self._activities.preview_objects(order)

    async def objects(
        self, after: InstalledPackage, before: InstalledPackage | None = None
    ) -> dict[str, ObjectPreview]:
        """Return the preview of each object by its name."""
        found = await self.preview(after, before)
        assert (found.problem, found.problems) == ("", ())
        return {one.ref.name: one for one in found.objects}


@pytest.fixture
async def previewed(
    control_plane: ControlPlane, own: Cluster, namespace: Namespace
) -> AsyncIterator[Previewed]:
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        yield Previewed(own, connection, namespace.name)


def differences(found: ObjectPreview) -> dict[str, tuple[str | None, str | None]]:
    return {one.field: (one.before, one.after) for one in found.fields}


async def test_a_first_installation_adds_all_and_applies_nothing(
    previewed: Previewed, namespace: Namespace
) -> None:
    found = await previewed.preview(previewed.package(secrets={"PASSWORD": "OLD"}))
    assert found.counts == {PreviewAction.ADDED: 4}
    for kind, name in (("ConfigMap", "settings"), ("ConfigMap", "one-anchor")):
        assert await namespace.cluster.get("v1", kind, name, namespace.name) is None


async def test_what_is_installed_is_unchanged_until_somebody_changes_it(
    previewed: Previewed, namespace: Namespace
) -> None:
    package = previewed.package(secrets={"PASSWORD": "OLD"})
    await previewed.install(package)
    found = await previewed.preview(package, package)
    assert found.counts == {PreviewAction.UNCHANGED: 4}, found.objects
    await namespace.apply(config_map("settings", key="by hand"))
    settings = (await previewed.objects(package))["settings"]
    assert differences(settings) == {"data.key": ('"by hand"', '"1"')}


async def test_a_change_is_shown_without_secrets(
    previewed: Previewed, namespace: Namespace
) -> None:
    before = previewed.package(secrets={"PASSWORD": "OLD"})
    await previewed.install(before)
    after = before.but(given={"KEY": "2", "EXTRA": "false"}, secrets={"PASSWORD": "NEW"})
    whole = await previewed.preview(after, before)
    assert not any(
        part in whole.model_dump_json()
        for part in ("first", "second", "two lines", "Zmlyc3Q", "c2Vjb25k")
    )
    found = {one.ref.name: one for one in whole.objects}
    assert differences(found["settings"]) == {"data.key": ('"1"', '"2"')}
    assert found["password"].fields == (
        FieldDifference(field="data.password", before="(hidden)", after="(hidden)"),
    )
    app = differences(found["app"])
    path = "spec.template.spec.containers[name=main].env[name=PASSWORD].value"
    assert app[path] == ("(hidden)", '"*****"')
    assert "spec.template.metadata.annotations[kudo.dev/dependencies-hash]" in app
    assert found["extra"].action is PreviewAction.DELETED
    live = await namespace.cluster.get("v1", "ConfigMap", "settings", namespace.name)
    assert live is not None
    assert live["data"] == {"key": "1"}


async def test_what_is_left_refused_or_unknown_is_named(
    previewed: Previewed, namespace: Namespace
) -> None:
    before = previewed.package()
    await previewed.install(before)
    theirs = config_map("theirs")
    theirs["metadata"]["labels"] = {"kudo.dev/instance": "another"}
    await namespace.apply(theirs)
    thing = {"apiVersion": "tests.example/v1", "kind": "Strange", "metadata": {"name": "thing"}}
    after = previewed.package(
        {
            "settings.yaml": [config_map("theirs"), thing],
            "app.yaml": [deployment("bad", replicas=-1)],
        }
    )
    found = await previewed.objects(after, before)
    actions = {name: one.action for name, one in found.items()}
    assert actions == {
        "theirs": PreviewAction.REFUSED,
        "bad": PreviewAction.REFUSED,
        "thing": PreviewAction.ADDED,
        "password": PreviewAction.UNCHANGED,
        "extra": PreviewAction.UNCHANGED,
        "settings": PreviewAction.LEFT,
        "app": PreviewAction.LEFT,
    }
    assert "belongs to the instance another" in found["theirs"].problem
    assert "spec.replicas" in found["bad"].problem
    assert "not in the cluster yet" in found["thing"].problem


async def test_a_job_that_has_ended_is_replaced(
    previewed: Previewed, namespace: Namespace, own: Cluster
) -> None:
    other = job("once")
    other["spec"]["template"]["spec"]["containers"][0]["image"] = "example/main:2"
    before = previewed.package({"extra.yaml": [job("once")]})
    await previewed.install(before)
    after = previewed.package({"extra.yaml": [other]})
    found = (await previewed.objects(after, before))["once"]
    assert found.action is PreviewAction.CHANGED
    assert "made again" in found.problem


async def test_templates_that_fail_are_problems_and_pipes_are_notes(previewed: Previewed) -> None:
    pipe = task("Pipe", "made", pod="pod.yaml", pipe=[])
    package = previewed.package({"app.yaml": "{{ .Params.NONE }}", "pod.yaml": ""}, [*TASKS, pipe])
    found = await previewed.preview(package)
    (problem,) = found.problems
    assert problem.startswith("task all: ")
    assert "NONE" in problem
    assert found.notes == ("task made: what a Pipe makes can't be foreseen",)
    assert [one.ref.name for one in found.objects] == ["settings", "password", "extra"]


async def test_a_namespace_that_is_not_there_yet(own: Cluster, control_plane: ControlPlane) -> None:
    kubeconfig = control_plane.credentials.kubeconfig("admin")
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        previewed = Previewed(own, connection, "not-there")
        found = await previewed.preview(previewed.package())
    assert found.counts == {PreviewAction.ADDED: 4}
    assert all("namespace is not there yet" in one.problem for one in found.objects)


async def test_a_secret_that_is_not_there(previewed: Previewed) -> None:
    found = await previewed.preview(previewed.package(secrets={"PASSWORD": "LOST"}))
    assert "'LOST' was not found" in found.problem
