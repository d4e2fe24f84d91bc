"""What applied objects get, and what else they are given before they are applied."""

from typing import Any

import pytest

from temporal_plans.domain.packages.anchor import anchor, anchor_name, owned
from temporal_plans.domain.packages.belonging import controlled, foreign
from temporal_plans.domain.packages.enhancement import NAMESPACE_KEY, Origin, enhanced
from temporal_plans.domain.packages.manifests import part, pod_template_path

ORIGIN = Origin(
    operator="web",
    operator_version="1.0.0",
    instance="one",
    namespace="here",
    plan="deploy",
    phase="main",
    step="app",
    uid="run-1",
)
LABELS = {"heritage": "kudo", "kudo.dev/operator": "web", "kudo.dev/instance": "one"}
MARKS = {
    "kudo.dev/plan": "deploy",
    "kudo.dev/phase": "main",
    "kudo.dev/step": "app",
    "kudo.dev/last-plan-execution-uid": "run-1",
}
VERSION = {"kudo.dev/operator-version": "1.0.0"}


def made(version: str = "v1", kind: str = "ConfigMap", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "it"}, **more}


def test_every_object_has_its_origin() -> None:
    found = enhanced(made(data={"key": "value"}), ORIGIN, namespaced=True)
    assert found == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "it", "namespace": "here", "labels": LABELS, "annotations": MARKS},
        "data": {"key": "value"},
    }


def test_what_the_template_says_is_kept_and_ours_has_precedence() -> None:
    manifest = made()
    manifest["metadata"] |= {
        "namespace": "elsewhere",
        "labels": {"app": "it", "heritage": "other"},
        "annotations": {"note": "kept", "kudo.dev/plan": "other"},
    }
    found = enhanced(manifest, ORIGIN, namespaced=True)["metadata"]
    assert found["namespace"] == "here"
    assert found["labels"] == {"app": "it", **LABELS}
    assert found["annotations"] == {"note": "kept", **MARKS}
    assert manifest["metadata"]["labels"] == {"app": "it", "heritage": "other"}, "not in place"


def test_an_object_of_the_cluster_has_no_namespace() -> None:
    manifest = made(kind="Namespace")
    manifest["metadata"]["namespace"] = "here"
    metadata = enhanced(manifest, ORIGIN, namespaced=False)["metadata"]
    assert "namespace" not in metadata
    assert metadata["annotations"]["temporal-plans/namespace"] == ORIGIN.namespace
    inside = enhanced(manifest, ORIGIN, namespaced=True)["metadata"]["annotations"]
    assert "temporal-plans/namespace" not in inside


def test_a_status_is_the_cluster_s() -> None:
    assert "status" not in enhanced(made(status={"phase": "Bound"}), ORIGIN, namespaced=True)


WITH_PODS = [
    ("apps/v1", "Deployment"),
    ("apps/v1beta2", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "ReplicationController"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
]


@pytest.mark.parametrize(("version", "kind"), WITH_PODS)
def test_pods_have_what_stays_the_same_between_runs(version: str, kind: str) -> None:
    found = enhanced(made(version, kind), ORIGIN, namespaced=True)
    template = part(found, *pod_template_path(found))
    assert template == {"metadata": {"labels": LABELS, "annotations": VERSION}}


def test_a_cron_job_has_no_template_of_its_own() -> None:
    found = enhanced(made("batch/v1", "CronJob"), ORIGIN, namespaced=True)
    assert list(found["spec"]) == ["jobTemplate"]


@pytest.mark.parametrize(
    ("version", "kind"),
    [("v1", "Pod"), ("example.org/v1", "Deployment"), ("batch/v1", "Thing")],
)
def test_other_kinds_stay_as_they_are_below_their_metadata(version: str, kind: str) -> None:
    spec: dict[str, Any] = {"template": {"metadata": {}}}
    assert enhanced(made(version, kind, spec=spec), ORIGIN, namespaced=True)["spec"] == spec


def test_claims_of_a_stateful_set_are_labelled() -> None:
    claims: list[Any] = [
        {"metadata": {"name": "data", "labels": {"kept": "yes"}}},
        {"spec": {}},
        "none",
    ]
    manifest = made("apps/v1", "StatefulSet", spec={"volumeClaimTemplates": claims})
    assert enhanced(manifest, ORIGIN, namespaced=True)["spec"]["volumeClaimTemplates"] == [
        {"metadata": {"name": "data", "labels": {"kept": "yes", **LABELS}}},
        {"spec": {}, "metadata": {"labels": LABELS}},
        "none",
    ]


@pytest.mark.parametrize("wrong", ["text", 5, ["list"], True])
def test_what_is_no_mapping_is_left_to_the_api_server(wrong: Any) -> None:
    manifest = made("apps/v1", "Deployment", spec={"template": wrong})
    manifest["metadata"]["labels"] = wrong
    found = enhanced(manifest, ORIGIN, namespaced=True)
    assert found["metadata"]["labels"] == wrong
    assert found["spec"]["template"] == wrong


@pytest.mark.parametrize("spec", [None, {"template": None}])
def test_what_is_null_is_made(spec: Any) -> None:
    found = enhanced(made("apps/v1", "Deployment", spec=spec), ORIGIN, namespaced=True)
    assert found["spec"]["template"]["metadata"]["labels"] == LABELS


# --- the anchor -----------------------------------------------------------------------------------


def live(**metadata: Any) -> dict[str, Any]:
    found = made()
    found["metadata"] |= {"uid": "uid-1", "namespace": "here", **metadata}
    return found


def test_the_anchor_is_the_same_in_all_plans() -> None:
    assert anchor(ORIGIN) == anchor(ORIGIN.but(plan="update", phase="x", step="y", uid="run-2"))
    metadata = {"name": anchor_name("one"), "namespace": "here", "labels": LABELS}
    assert anchor(ORIGIN)["metadata"] == {**metadata, "annotations": {}}


def test_the_anchor_owns_objects_of_its_namespace_without_controlling_them() -> None:
    other = {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "uid-0"}
    manifest = enhanced(made(), ORIGIN, namespaced=True)
    manifest["metadata"]["ownerReferences"] = [other]
    found = owned(manifest, live(name="one-anchor"))
    assert found["metadata"]["ownerReferences"] == [
        other,
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "one-anchor", "uid": "uid-1"},
    ]
    assert manifest["metadata"]["ownerReferences"] == [other], "not in place"


def test_the_anchor_owns_nothing_elsewhere() -> None:
    manifest = enhanced(made(kind="ClusterRole"), ORIGIN, namespaced=False)
    assert owned(manifest, live(name="one-anchor")) == manifest


# --- whose it is ----------------------------------------------------------------------------------


def owner(version: str = "apps/v1", kind: str = "ReplicaSet", name: str = "rs") -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "controller": True}


OWN = {"kudo.dev/instance": "one"}
OF_THE_CLUSTER = {"namespace": None}


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ({}, None),
        ({"labels": None, "ownerReferences": None}, None),
        ({"labels": {"kudo.dev/instance": "one"}}, None),
        ({"labels": {"kudo.dev/instance": "two"}}, "it belongs to the instance two"),
        (
            {"labels": OWN, "annotations": {NAMESPACE_KEY: "here"}, **OF_THE_CLUSTER},
            None,
        ),
        (
            {"labels": OWN, "annotations": {NAMESPACE_KEY: "there"}, **OF_THE_CLUSTER},
            "it belongs to the instance one of namespace there",
        ),
        ({"annotations": {NAMESPACE_KEY: "there"}, **OF_THE_CLUSTER}, None),
        (
            {"labels": OWN, "annotations": {NAMESPACE_KEY: "there"}, "namespace": "here"},
            None,
        ),
        ({"ownerReferences": [{**owner(), "controller": False}]}, None),
        ({"ownerReferences": [owner()]}, "it is controlled by ReplicaSet rs"),
        ({"ownerReferences": [owner("kudo.dev/v1beta1", "Instance", "one")]}, None),
        (
            {"ownerReferences": [owner("kudo.dev/v1beta1", "Instance", "two")]},
            "it is controlled by Instance two",
        ),
    ],
)
def test_an_object_may_belong_to_somebody_else(
    metadata: dict[str, Any], problem: str | None
) -> None:
    found = foreign(live(**metadata), "one", "here")
    assert (found and found.problem) == problem
    assert found is None or found.fix


def test_a_template_names_no_controller() -> None:
    assert controlled(live(ownerReferences=[{**owner(), "controller": False}])) is None
    found = controlled(live(ownerReferences=[owner()]))
    assert found is not None
    assert found.problem == "its template names the controller ReplicaSet rs"
