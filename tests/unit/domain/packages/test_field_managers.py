"""Fields of clients that applied become ours, once."""

from typing import Any

import pytest

from temporal_plans.domain.packages.field_managers import migrated_managers

OWN = "temporal-plans"


def entry(manager: str, operation: str, *keys: str, **more: Any) -> dict[str, Any]:
    data: dict[str, Any] = {f"f:{key}": {} for key in keys}
    return {"manager": manager, "operation": operation, "fieldsV1": {"f:data": data}, **more}


def applied(manager: str, *keys: str, by: str = "kubectl.kubernetes.io") -> dict[str, Any]:
    made = entry(manager, "Update", *keys)
    made["fieldsV1"]["f:metadata"] = {
        "f:annotations": {".": {}, f"f:{by}/last-applied-configuration": {}}
    }
    return made


def migrated(*managers: Any) -> list[dict[str, Any]] | None:
    return migrated_managers({"metadata": {"managedFields": list(managers)}}, OWN)


@pytest.mark.parametrize("by", ["kubectl.kubernetes.io", "kudo.dev"])
def test_a_client_that_keeps_what_it_applied_is_replaced(by: str) -> None:
    other = entry("autoscaler", "Update", "b")
    found = migrated(other, applied("some-client", "a", by=by))
    assert found is not None
    kept, own = found
    assert kept == other
    assert (own["manager"], own["operation"]) == (OWN, "Apply")
    assert own["fieldsV1"]["f:data"] == {"f:a": {}}


def test_its_fields_are_added_to_ours() -> None:
    found = migrated(entry(OWN, "Apply", "a"), applied("kubectl", "b"), applied("other", "c"))
    assert found is not None
    [own] = found
    assert sorted(own["fieldsV1"]["f:data"]) == ["f:a", "f:b", "f:c"]


@pytest.mark.parametrize(
    "managers",
    [
        (),
        (entry(OWN, "Apply", "a"),),
        (entry("kubectl-edit", "Update", "a"), entry("tests", "Apply", "b")),
        ({**applied("controller", "a"), "subresource": "status"},),
        ({**applied("someone", "a"), "operation": "Apply"},),
        ("none", None),
    ],
)
def test_others_keep_their_fields(managers: Any) -> None:
    assert migrated(*managers) is None
    assert migrated_managers({"metadata": {}}, OWN) is None
