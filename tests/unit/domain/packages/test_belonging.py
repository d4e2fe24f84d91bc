"""Whether an object of the cluster was applied for an instance."""

from copy import deepcopy
from typing import Any

import pytest

from temporal_plans.domain.packages.anchor import (
    claimed,
    noting_installation,
    recording_installation,
)
from temporal_plans.domain.packages.belonging import applied_for
from temporal_plans.domain.packages.manifests import put

MANAGER = "ours"
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {
        "name": "reader",
        "labels": {"heritage": "kudo", "kudo.dev/instance": "one"},
        "annotations": {"temporal-plans/namespace": "here"},
        "managedFields": [
            {"manager": "kubectl", "operation": "Update"},
            {"manager": MANAGER, "operation": "Apply"},
        ],
    },
}


def test_an_object_with_all_marks_was_applied_for_the_instance() -> None:
    assert applied_for(ROLE, "one", "here", MANAGER)


@pytest.mark.parametrize(
    ("path", "change"),
    [
        pytest.param(("labels",), {"kudo.dev/instance": "two"}, id="another-instance"),
        pytest.param(("labels",), {"heritage": "other"}, id="another-heritage"),
        pytest.param(
            ("annotations",), {"temporal-plans/namespace": "there"}, id="another-namespace"
        ),
        pytest.param((), {"annotations": {}}, id="no-annotation"),
        pytest.param((), {"namespace": "here"}, id="in-a-namespace"),
        pytest.param(
            (), {"managedFields": [{"manager": "copier", "operation": "Apply"}]}, id="copied"
        ),
        pytest.param(
            (), {"managedFields": [{"manager": MANAGER, "operation": "Update"}]}, id="created"
        ),
        pytest.param((), {"managedFields": None}, id="no-managers"),
    ],
)
def test_without_one_of_them_it_was_not(path: tuple[str, ...], change: dict[str, Any]) -> None:
    live = deepcopy(ROLE)
    put(live, ("metadata", *path), change)
    assert not applied_for(live, "one", "here", MANAGER)


def test_an_anchor_notes_which_installation_has_recorded_everything() -> None:
    assert recording_installation(claimed("one", "here", "web")) == ""
    fresh = claimed("one", "here", "web", "run-1")
    assert recording_installation(fresh) == "run-1"
    assert recording_installation({**fresh, **noting_installation("run-2")}) == "run-2"
    assert recording_installation({"data": {"installation": 5}}) == ""
