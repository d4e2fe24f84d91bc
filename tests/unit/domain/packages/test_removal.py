"""The order in which objects are removed, and why one is left."""

from typing import Any

import pytest

from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.removal import (
    belongs_to,
    is_custom,
    removal_stages,
    why_left,
)


def ref(kind: str, name: str, api_version: str = "v1") -> ObjectRef:
    return ObjectRef(api_version=api_version, kind=kind, namespace="here", name=name)


CONFIG, APP = ref("ConfigMap", "config"), ref("Deployment", "app", "apps/v1")
THING, OTHER = ref("Thing", "it", "tests.example/v1"), ref("Thing", "other", "tests.example/v1")


@pytest.mark.parametrize(
    ("inventory", "stages"),
    [
        ([], []),
        ([CONFIG, APP], [(APP, CONFIG)]),
        ([CONFIG, APP, THING, OTHER], [(OTHER, THING), (APP, CONFIG)]),
        ([THING, APP, OTHER], [(OTHER,), (APP,), (THING,)]),
        ([CONFIG, APP, CONFIG], [(APP, CONFIG)]),
        ([APP, ref("Deployment", "app", "apps/v1beta1")], [(APP,)]),
    ],
    ids=["nothing", "built in", "custom first", "one after the other", "twice", "two versions"],
)
def test_stages(inventory: list[ObjectRef], stages: list[tuple[ObjectRef, ...]]) -> None:
    assert list(removal_stages(inventory)) == stages


@pytest.mark.parametrize(
    ("api_version", "custom"),
    [
        ("v1", False),
        ("apps/v1", False),
        ("rbac.authorization.k8s.io/v1", False),
        ("snapshot.storage.k8s.io/v1", True),
        ("monitoring.coreos.com/v1", True),
    ],
)
def test_kinds_of_kubernetes_itself(api_version: str, custom: bool) -> None:
    assert is_custom(ref("Any", "it", api_version)) is custom


@pytest.mark.parametrize(
    ("labels", "belongs"),
    [({"kudo.dev/instance": "web"}, True), ({"kudo.dev/instance": "db"}, False), (None, False)],
)
def test_the_label_says_whose_an_object_is(labels: dict[str, str] | None, belongs: bool) -> None:
    assert belongs_to({"metadata": {"labels": labels}}, "web", "prod") is belongs
    elsewhere = {"temporal-plans/namespace": "test"}
    assert not belongs_to({"metadata": {"labels": labels, "annotations": elsewhere}}, "web", "prod")


@pytest.mark.parametrize(
    ("metadata", "conditions", "reason"),
    [
        ({}, [], "is being deleted"),
        ({"finalizers": ["a.example/x", "b"]}, [],
         "is being deleted: its finalizers are not removed: a.example/x, b"),
        ({"finalizers": ["foregroundDeletion"]}, [],
         "is being deleted: objects that it owns are not gone"),
        ({"finalizers": ["foregroundDeletion", "b"]}, [],
         "is being deleted: its finalizers are not removed: b"),
        ({}, [
            {"type": "NamespaceContentRemaining", "status": "True", "message": "pods. has 1"},
            {"type": "NamespaceFinalizersRemaining", "status": "False", "message": "none"},
            {"type": "Ready", "status": "True", "message": "fine"},
        ], "is being deleted: pods. has 1"),
    ],
    ids=["nothing said", "finalizers", "owned", "finalizers before owned", "conditions"],
)  # fmt: skip
def test_why_an_object_is_left(
    metadata: dict[str, Any], conditions: list[dict[str, str]], reason: str
) -> None:
    assert why_left({"metadata": metadata, "status": {"conditions": conditions}}) == reason
