"""A package whose Instance was terminated, deployed again on a real API server: nothing that the
former one applied or began is left."""

from pathlib import Path

from builders.packages import package_files, write_package
from kubernetes.installed import Installed
from kubernetes.manifests import config_map
from kubernetes.namespaces import Namespace
from kubernetes.package_steps import DONE, Steps, ended
from kubernetes.place import Place
from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.domain.packages.anchor import anchor_ref, claimed
from temporal_plans.domain.packages.enhancement import Origin, enhanced
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.packages import TasksOutcome

OPERATOR = """\
apiVersion: kudo.dev/v1beta1
name: web
operatorVersion: "{version}"
kubernetesVersion: "1.25"
tasks:
  - {{name: app, kind: Apply, spec: {{resources: [{templates}]}}}}
  - {{name: more, kind: Apply, spec: {{resources: [{more}]}}}}
plans:
  deploy:
    strategy: serial
    phases:
      - name: main
        strategy: serial
        steps:
          - {{name: app, tasks: [app]}}
          - {{name: more, tasks: [more]}}
"""
CONFIG = "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}\n"
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Namespace }}-reader
rules: []
"""
BROKEN = "{apiVersion: tests.example/v1, kind: Missing, metadata: {name: app}}\n"


def package(folder: Path, version: str, templates: dict[str, str], more: str) -> Path:
    operator = OPERATOR.format(
        version=version, templates=", ".join(one for one in templates if one != more), more=more
    )
    return write_package(folder / version, package_files(operator, templates=templates))


async def test_nothing_is_left_of_it(
    place: Place, own: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    """The former one had a ClusterRole that the next one does not apply, and a plan in ERROR."""
    templates = {"app.yaml": CONFIG, "role.yaml": ROLE, "broken.yaml": BROKEN}
    former = package(tmp_path, "1.0.0", templates, "broken.yaml")
    latter = package(tmp_path, "1.1.0", {"app.yaml": CONFIG, "more.yaml": CONFIG}, "more.yaml")
    name = f"left-{namespace.name}"
    installed = Installed(place, name, namespace.name)
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{namespace.name}-reader"},
    }
    await installed.deploy(former)
    await installed.until_status("deploy", Status.ERROR)
    assert await own.get(role) is not None
    await (await place.temporal()).get_workflow_handle(service_id(name)).terminate()

    assert await installed.deployed(latter) == "deploy"

    inventory = await (await place.client()).inventory(name)
    kinds = [str(one) for one in inventory.objects]
    assert kinds == [
        f"ConfigMap {name}-anchor",
        f"ClusterRole {namespace.name}-reader",
        "ConfigMap app",
    ]
    await installed.uninstall()
    assert await own.get(role) is None
    assert await own.find("v1", "ConfigMap", namespace.name, labels="heritage=kudo") == []


async def test_an_uninstall_at_once_leaves_nothing(
    place: Place, own: Cluster, namespace: Namespace, tmp_path: Path
) -> None:
    """No step of the next one has recorded anything when it is uninstalled by command."""
    templates = {"app.yaml": CONFIG, "role.yaml": ROLE, "broken.yaml": BROKEN}
    former = package(tmp_path, "1.0.0", templates, "broken.yaml")
    name = f"gone-{namespace.name}"
    installed = Installed(place, name, namespace.name)
    await installed.deploy(former)
    await installed.until_status("deploy", Status.ERROR)
    await (await place.temporal()).get_workflow_handle(service_id(name)).terminate()
    await installed.deploy(former)

    said = await place.command("uninstall", "-s", name, "--yes", "--wait")

    assert "cleanup COMPLETE" in said.out
    assert (
        await own.find(
            "rbac.authorization.k8s.io/v1", "ClusterRole", labels=f"kudo.dev/instance={name}"
        )
        == []
    )
    assert await own.find("v1", "ConfigMap", namespace.name, labels="heritage=kudo") == []


async def test_what_was_found_is_found_again_until_it_is_recorded(
    own: Cluster, steps: Steps
) -> None:
    """A worker may be killed in between."""
    origin = Origin(operator="web", instance="one", namespace=steps.namespace)
    await own.create(claimed("one", steps.namespace, "one", "the-former"))
    role: Object = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": f"{steps.namespace}-reader"},
        "rules": [],
    }
    live = await own.apply(enhanced(role, origin, namespaced=False))
    order = steps.apply(config_map("app"))
    order = order.but(run=order.run.but(installation="the-next"))
    try:
        steps.owner.over = True
        assert (await steps.execute(order)).outcome is TasksOutcome.FAILED
        steps.owner.over = False
        for found in ([f"ClusterRole {steps.namespace}-reader"], []):
            assert await ended(steps, order) == DONE
            assert steps.owner.names == ["ConfigMap one-anchor", *found, "ConfigMap app"]
        anchor = await own.get(anchor_ref("one", steps.namespace).manifest)
        assert anchor is not None
        assert anchor["data"] == {"service": "one", "installation": "the-next"}
    finally:
        await own.delete(live)
