"""What pods read, and the hash of it."""

import base64
from typing import Any

import pytest

from temporal_plans.domain.packages.dependencies import (
    dependencies,
    dependencies_hash,
    with_hash,
)
from temporal_plans.domain.packages.inventory import ObjectRef

HASH = "kudo.dev/dependencies-hash"

POD: dict[str, Any] = {
    "imagePullSecrets": [{"name": "pull"}],
    "volumes": [
        {"configMap": {"name": "volume"}},
        {"secret": {"secretName": "volume"}},
        {"projected": {"sources": [{"configMap": {"name": "projected"}}, {"secret": {}}]}},
        {"emptyDir": {}},
        "none",
    ],
    "containers": [
        {
            "env": [
                {"name": "A", "value": "plain"},
                {"valueFrom": {"configMapKeyRef": {"name": "env", "key": "a"}}},
                {"valueFrom": {"secretKeyRef": {"name": "env", "key": "b"}}},
            ],
            "envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "all"}}],
        }
    ],
    "initContainers": [{"envFrom": [{"secretRef": {"name": "first"}}]}],
}


def workload(version: str, kind: str, pod: dict[str, Any] = POD) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "here"}
    spec: dict[str, Any] = {"template": {"spec": pod}}
    if kind == "CronJob":
        spec = {"jobTemplate": {"spec": spec}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def config_map(name: str = "all", **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def secret(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "all"}, **more}


@pytest.mark.parametrize(
    ("version", "kind"),
    [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "CronJob")],
)
def test_all_that_pods_read_is_found(version: str, kind: str) -> None:
    found = dependencies(workload(version, kind))
    assert [str(one) for one in found] == [
        *("ConfigMap all", "ConfigMap env", "ConfigMap projected", "ConfigMap volume"),
        *("Secret all", "Secret env", "Secret first", "Secret pull", "Secret volume"),
    ]
    assert {one.namespace for one in found} == {"here"}


@pytest.mark.parametrize(
    ("version", "kind"), [("v1", "Pod"), ("batch/v1", "Job"), ("example.org/v1", "Thing")]
)
def test_other_kinds_are_not_replaced_by_a_change(version: str, kind: str) -> None:
    manifest = workload(version, kind)
    assert dependencies(manifest) == ()
    assert with_hash(manifest, {}) == manifest


def test_pods_that_read_nothing_have_no_hash() -> None:
    manifest = workload("apps/v1", "Deployment", {"containers": [{"name": "main"}]})
    assert with_hash(manifest, {}) == manifest


def hash_of(*known: dict[str, Any]) -> str:
    pod = {"containers": [{"envFrom": [{"configMapRef": {"name": "all"}}]}]}
    made = with_hash(
        workload("apps/v1", "Deployment", pod),
        {ObjectRef.of({**one, "metadata": {**one["metadata"], "namespace": "here"}}).key: one
         for one in known},
    )  # fmt: skip
    return str(made["spec"]["template"]["metadata"]["annotations"][HASH])


def test_the_hash_is_of_the_content() -> None:
    first = hash_of(config_map(data={"key": "1"}))
    assert len(first) == 32
    assert hash_of(config_map(data={"key": "2"})) != first
    assert hash_of() != first, "it is not there"


def test_what_the_cluster_adds_is_not_of_the_content() -> None:
    rendered = config_map(data={"key": "1"})
    live = config_map(data={"key": "1"})
    live["metadata"] |= {"uid": "x", "labels": {"a": "b"}, "annotations": {"kudo.dev/plan": "y"}}
    assert dependencies_hash([rendered]) == dependencies_hash([live])


def test_a_secret_is_the_same_as_texts_and_as_the_cluster_has_it() -> None:
    texts = secret(stringData={"key": "value"})
    data = secret(data={"key": base64.b64encode(b"value").decode()})
    assert dependencies_hash([texts]) == dependencies_hash([data])


def test_what_is_marked_is_not_considered() -> None:
    marked = config_map(data={"key": "1"})
    marked["metadata"]["annotations"] = {"kudo.dev/skip-hash-calculation": "true"}
    assert dependencies_hash([marked]) == dependencies_hash([None])


def test_the_order_is_of_the_hash() -> None:
    one, two = config_map("one"), config_map("two")
    assert dependencies_hash([one, two]) != dependencies_hash([two, one])
