"""What is seen of the objects of an installation on a real API server, and what explains it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from kubernetes.control_plane import ControlPlane
from kubernetes.installations import apply, client_of, client_with, lending, package_in
from kubernetes.manifests import config_map, deployment, job, stateful_set
from kubernetes.namespaces import LONG, Namespace
from pauses import until
from temporal_plans.activities.kubernetes.access import ClusterAccess
from temporal_plans.activities.kubernetes.cluster import Cluster, Object, connected
from temporal_plans.activities.kubernetes.connection import ClusterConnection
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.secrets import SecretLookup
from temporal_plans.activities.packages.observation import ObservationActivities
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.object_causes import (
    ObjectCause,
    cause_of_refusal,
    cause_of_report,
)
from temporal_plans.domain.packages.object_report import ObjectReport, ObjectState
from temporal_plans.messages.packages import (
    LOOK_LIMIT,
    InstalledPackage,
    LookAtObjects,
    ObjectsReport,
)
from temporal_plans.worker.control_plane.stages import PodFate

NONE = SecretLookup([])


class _Secrets:
    """A provider of one secret."""

    async def find(self, reference: str) -> bytes | None:
        return {"word": b"restarting failed"}.get(reference)


class Watched:
    """An instance with its objects, in one namespace."""

    def __init__(self, own: Cluster, namespace: Namespace) -> None:
        self.own = own
        self.namespace = namespace
        self.package = package_in(namespace)
        self.objects: list[Object] = []

    async def apply(self, *manifests: Object) -> list[Object]:
        applied = await apply(self.own, self.package, manifests)
        known = {ObjectRef.of(one).key: one for one in [*self.objects, *applied]}
        self.objects = list(known.values())
        return applied

    async def look(self, **order: object) -> ObjectsReport:
        return await look(self.own, self.package, self.objects, **order)

    async def report(self, name: str) -> ObjectReport:
        """Return the report of one object."""
        found = await self.look()
        assert found.problem == ""
        (report,) = [one for one in found.objects if one.ref.name == name]
        return report

    async def until(self, name: str, wanted: Callable[[ObjectReport], object]) -> ObjectReport:
        return await until(lambda: self.report(name), wanted, patience=LONG)


async def look(
    own: Cluster, package: InstalledPackage, objects: Sequence[Object], **order: object
) -> ObjectsReport:
    activities = ObservationActivities(
        client_of(package, objects), lending(own), SecretLookup([_Secrets()])
    )
    message = LookAtObjects.model_validate(
        {"owner": f"service/{package.service}", "package": package, **order}
    )
    return await activities.look_at_objects(message)


@pytest.fixture
def watched(own: Cluster, namespace: Namespace) -> Watched:
    return Watched(own, namespace)


def caused(report: ObjectReport) -> ObjectCause | None:
    explained = cause_of_report(report)
    return explained.cause if explained else None


async def test_a_healthy_instance_is_ready_and_unchanged(watched: Watched) -> None:
    await watched.apply(
        config_map("settings"), deployment("app"), stateful_set("db", storage="1Gi"), job("once")
    )
    found = await until(watched.look, lambda report: report.ready, patience=LONG)
    assert (found.total, found.looked, found.following) == (5, 5, None)
    assert found.counts == {ObjectState.HEALTHY: 5}
    assert found.changed == 0, [one for one in found.objects if one.changes]
    assert (await watched.look(notable=True)).objects == ()


async def test_a_crashing_pod_is_named_without_secrets(watched: Watched) -> None:
    await watched.apply(deployment("bad", fate=PodFate.CRASH))
    found = await watched.until("bad", lambda one: one.pods and one.events)
    assert found.state is ObjectState.UNHEALTHY
    assert "main: CrashLoopBackOff" in found.pods[0]
    assert found.events == ("BackOff: restarting failed container",)
    assert caused(found) is ObjectCause.CRASHES

    watched.package = watched.package.but(secrets={"WORD": "word"})
    found = await watched.report("bad")
    assert "restarting failed" not in found.events[0]
    watched.package = watched.package.but(secrets={"WORD": "lost"})
    assert "'lost' was not found" in (await watched.look()).problem


async def test_a_job_that_failed(watched: Watched) -> None:
    await watched.apply(job("once", fate=PodFate.FAIL))
    found = await watched.until("once", lambda one: one.state is ObjectState.FAILED)
    assert caused(found) is ObjectCause.JOB_FAILED
    assert not (await watched.look()).ready


async def test_changes_by_hand_are_named(watched: Watched) -> None:
    _, app = await watched.apply(config_map("settings", key="1"), deployment("app"))
    await watched.until("app", lambda one: one.state is ObjectState.HEALTHY)
    await watched.namespace.apply(config_map("settings", key="2", more="3"))
    changed = await watched.report("settings")
    assert {str(one) for one in changed.changes} == {"data.key (by tests)", "data.more (by tests)"}
    assert caused(changed) is ObjectCause.CHANGED
    # What is applied again is ours again; what others added stays theirs.
    await watched.apply(config_map("settings", key="1"))
    await watched.namespace.apply(config_map("settings", more="4"))  # after ours, in whole seconds
    changed = await watched.report("settings")
    assert [str(one) for one in changed.changes] == ["data.more (by tests)"]

    await watched.namespace.apply(_with_image(app, "example/other:2"))
    changed = await watched.report("app")
    path = "spec.template.spec.containers[name=main].image (by tests)"
    assert path in [str(one) for one in changed.changes]
    assert (await watched.look()).changed == 2


def _with_image(live: Object, image: str) -> Object:
    """What a person would apply to change an image."""
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"selector": live["spec"]["selector"], "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": live["metadata"]["name"]},
        "spec": spec,
    }


async def test_objects_that_are_missing_or_of_somebody_else(watched: Watched) -> None:
    gone, taken, bare = await watched.apply(*map(config_map, ("gone", "taken", "bare")))
    await watched.own.delete(gone)
    theirs = config_map("taken")
    theirs["metadata"]["labels"] = {"kudo.dev/instance": "another"}
    await watched.namespace.apply(theirs)
    await watched.own.merge(bare, {"metadata": {"labels": {"kudo.dev/instance": None}}})
    states = {one.ref.name: one for one in (await watched.look()).objects}
    assert caused(states["gone"]) is ObjectCause.MISSING
    assert states["taken"].reason.startswith("it belongs to the instance another")
    assert caused(states["taken"]) is ObjectCause.FOREIGN
    assert states["bare"].changes[0].field == "metadata.labels[kudo.dev/instance]"
    assert taken["metadata"]["name"] == "taken"


async def test_pages(own: Cluster, namespace: Namespace) -> None:
    package = package_in(namespace)
    refs = [
        ObjectRef(api_version="v1", kind="ConfigMap", namespace=namespace.name, name=f"no-{number}")
        for number in range(LOOK_LIMIT + 5)
    ]
    activities = ObservationActivities(client_with(package, refs), lending(own), NONE)
    order = LookAtObjects(owner="service/web", package=package)
    page = await activities.look_at_objects(order)
    assert (page.total, page.looked, page.following) == (LOOK_LIMIT + 5, LOOK_LIMIT, LOOK_LIMIT)
    page = await activities.look_at_objects(order.but(first=LOOK_LIMIT))
    assert (page.looked, page.following, len(page.objects)) == (5, None, 5)
    whole = await activities.look_at_objects(order.but(notable=True))
    assert (whole.looked, whole.following) == (LOOK_LIMIT + 5, None)
    assert whole.counts == {ObjectState.MISSING: LOOK_LIMIT + 5}
    assert len(whole.objects) == LOOK_LIMIT
    one = await activities.look_at_objects(order.but(objects=(refs[-1],)))
    assert [report.ref for report in one.objects] == [refs[-1]]


async def test_a_full_quota_explains_a_deployment_without_pods(watched: Watched) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "full"},
        "spec": {"hard": {"pods": "0"}},
    }
    await watched.namespace.apply(quota)
    await watched.namespace.until("v1", "ResourceQuota", "full", lambda one: one.get("status"))
    await watched.apply(deployment("app"), stateful_set("db"))
    for name in ("app", "db"):
        found = await watched.until(name, lambda one: caused(one) is ObjectCause.QUOTA)
        explained = cause_of_report(found)
        assert explained is not None
        assert "exceeded quota: full" in explained.text


@pytest.mark.parametrize("down", [True, False], ids=["webhook down", "denied"])
async def test_refusals_of_webhooks_and_policies(
    own: Cluster, namespace: Namespace, down: bool
) -> None:
    judges = [_webhook(namespace)] if down else _policy(namespace)

    async def refusal() -> str:
        try:
            await own.apply(_placed(namespace, "settings"), dry_run=True)
        except ClusterError as error:
            return str(error)
        return ""

    for judge in judges:
        await own.apply(judge)
    try:
        text = await until(refusal)
    finally:
        for judge in judges:
            await own.delete(judge)
    explained = cause_of_refusal(text)
    assert explained is not None, text
    wanted = ObjectCause.WEBHOOK_DOWN if down else ObjectCause.WEBHOOK_REFUSES
    assert explained.cause is wanted, text


def _policy(namespace: Namespace) -> list[Object]:
    """A policy that refuses every ConfigMap of the namespace."""
    name = {"name": namespace.name}
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}}
    rules = [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["configmaps"],
        }
    ]
    binding = {"policyName": namespace.name, "validationActions": ["Deny"]}
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": name,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules, "namespaceSelector": selector},
                "validations": [{"expression": "false", "message": "not here"}],
            },
        },
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": name,
            "spec": binding,
        },
    ]


def _webhook(namespace: Namespace) -> Object:
    """A webhook for the namespace at an address where nothing answers."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace.name},
        "webhooks": [
            {
                "name": "down.tests.example",
                "clientConfig": {"url": "https://127.0.0.1:1/"},
                "rules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["*"],
                        "resources": ["configmaps"],
                    }
                ],
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": namespace.name}
                },
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
        ],
    }


def _placed(namespace: Namespace, name: str) -> Object:
    made = config_map(name)
    made["metadata"]["namespace"] = namespace.name
    return made


async def test_other_refusals(
    own: Cluster, namespace: Namespace, control_plane: ControlPlane
) -> None:
    lost = {**config_map("it"), "metadata": {"name": "it", "namespace": "none"}}
    thing = {"apiVersion": "tests.example/v1", "kind": "Unknown", "metadata": {"name": "it"}}
    kept = _placed(namespace, "kept")
    kept["metadata"]["finalizers"] = ["tests.example/keep"]
    await own.apply(kept)
    await namespace.delete()
    for manifest, cause in (
        (lost, ObjectCause.NO_NAMESPACE),
        (thing, ObjectCause.NO_KIND),
        (_placed(namespace, "late"), ObjectCause.NAMESPACE_DELETED),
    ):
        with pytest.raises(ClusterError) as refused:
            await own.apply(manifest)
        explained = cause_of_refusal(str(refused.value))
        assert explained is not None, refused.value
        assert explained.cause is cause
    await own.merge(kept, {"metadata": {"finalizers": []}})


async def test_credentials_that_have_expired(
    watched: Watched, control_plane: ControlPlane, tmp_path: Path
) -> None:
    """The worker reads its kubeconfig again: a token that was renewed there is taken at once."""
    valid = control_plane.credentials.kubeconfig("admin").read_text()
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(valid)
    order = LookAtObjects(owner="service/web", package=watched.package)
    async with ClusterConnection(ClusterAccess("tests", kubeconfig)) as connection:
        activities = ObservationActivities(client_of(watched.package, []), connection.use, NONE)
        expired = control_plane.credentials.kubeconfig_of("expired", "expired-token")
        kubeconfig.write_text(expired.read_text())
        problem = (await activities.look_at_objects(order)).problem
        explained = cause_of_refusal(problem)
        assert explained is not None, problem
        assert explained.cause is ObjectCause.CREDENTIALS
        kubeconfig.write_text(valid)
        assert (await activities.look_at_objects(order)).problem == ""


async def test_a_worker_that_may_not_read(
    watched: Watched, namespace: Namespace, control_plane: ControlPlane
) -> None:
    (applied,) = await watched.apply(config_map("settings"))
    async with connected(control_plane.credentials.kubeconfig("nobody")) as forbidden:
        found = await look(forbidden, watched.package, [applied])
    assert {one.state for one in found.objects} == {ObjectState.UNKNOWN}
    assert caused(found.objects[0]) is ObjectCause.FORBIDDEN
    assert not found.ready
