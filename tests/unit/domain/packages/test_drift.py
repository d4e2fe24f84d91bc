"""Fields that others have set since an object was applied."""

from typing import Any

import pytest

from temporal_plans.domain.packages.drift import changes_of_others
from temporal_plans.domain.packages.object_report import CHANGES_LIMIT

BEFORE, APPLIED, LATER = (f"2026-01-01T00:00:0{second}Z" for second in (1, 2, 3))


def entry(
    manager: str, fields: Any, at: str = LATER, operation: str = "Update", **more: str
) -> dict[str, Any]:
    """An entry of managedFields."""
    return {
        "manager": manager,
        "operation": operation,
        "time": at,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


OURS = entry("ours", {"f:data": {".": {}, "f:key": {}}}, APPLIED, "Apply")
REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}


def changes(*entries: Any, labels: dict[str, str] | None = None) -> list[str]:
    own = {"kudo.dev/instance": "web"} if labels is None else labels
    live = {"metadata": {"labels": own, "managedFields": list(entries)}}
    return [str(one) for one in changes_of_others(live, "ours")]


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ([], []),
        ([entry("kubectl-edit", {"f:data": {"f:other": {}}})], ["data.other (by kubectl-edit)"]),
        ([entry("kubectl-edit", {"f:data": {"f:key": {}}})], []),
        ([entry("helm", REPLICAS, operation="Apply")], ["spec.replicas (by helm)"]),
        ([entry("kubectl", REPLICAS, subresource="scale")], ["spec.replicas (by kubectl)"]),
        ([entry("kube-controller-manager", REPLICAS, subresource="scale")], []),
        ([entry("operator", {"f:status": {"f:phase": {}}}, subresource="status")], []),
        ([entry("operator", {"f:metadata": {"f:finalizers": {'v:"x"': {}}}})], []),
        ([entry("old", REPLICAS, BEFORE)], []),
        ([entry("same second", REPLICAS, APPLIED)], ["spec.replicas (by same second)"]),
        ([entry("a", {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:image": {}}}}})],
         ["spec.containers[name=main].image (by a)"]),
        ([entry("a", {"f:metadata": {"f:labels": {"f:a.example/b": {}}}})],
         ["metadata.labels[a.example/b] (by a)"]),
        ([entry("a", {"f:spec": {".": {}}})], ["spec (by a)"]),
        ([entry("a", {"f:args": {"i:0": {}, 'v:"x"': {}}})],
         ["args[0] (by a)", 'args["x"] (by a)']),
        (["no entry", entry("a", "no fields")], []),
    ],
    ids=[
        "nobody", "another field", "the same value", "applied", "scaled by hand", "scaled by HPA",
        "status", "finalizers", "before", "same second", "element", "label", "whole", "lists",
        "odd",
    ],
)  # fmt: skip
def test_changes(others: list[Any], found: list[str]) -> None:
    assert changes(OURS, *others) == found


def test_an_object_that_was_never_applied_has_no_changes() -> None:
    assert changes(entry("helm", REPLICAS)) == []


def test_the_label_of_the_instance_was_removed() -> None:
    assert changes(OURS, labels={}) == ["metadata.labels[kudo.dev/instance] (by removal)"]


def test_changes_are_bounded() -> None:
    many: dict[str, Any] = {"f:data": {f"f:no-{number}": {} for number in range(50)}}
    assert len(changes(OURS, entry("a", many))) == CHANGES_LIMIT
