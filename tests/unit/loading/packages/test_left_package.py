"""A package rebuilt from the resources that a controller kept of it."""

from typing import Any

import pytest

from temporal_plans.domain.packages.left_instances import LeftPackage
from temporal_plans.domain.packages.package import Package
from temporal_plans.loading.packages.left_package import left_files
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.loading.packages.structures import decode

PLANS = {
    "deploy": {
        "strategy": "serial",
        "phases": [
            {
                "name": "main",
                "strategy": "parallel",
                "steps": [{"name": "one", "delete": False, "tasks": ["app", "flag"]}],
            }
        ],
    }
}
TASKS = [
    {"name": "app", "kind": "Apply", "spec": {"resources": ["app.yaml"], "done": False}},
    {"name": "flag", "kind": "Toggle", "spec": {"resources": ["app.yaml"], "parameter": "ON"}},
]


def rebuilt(*parameters: dict[str, Any]) -> Package:
    left = LeftPackage(
        name="shop",
        operator={"description": "A shop", "kubernetesVersion": "1.25"},
        version={
            "version": "1.10",
            "appVersion": "2.0",
            "tasks": TASKS,
            "plans": PLANS,
            "parameters": list(parameters),
            "templates": {"app.yaml": "a: {{ .Name }}\n", "sub/b.yaml": "b: 1\n"},
        },
    )
    read = read_files(left_files(left), "left")
    assert read.faults == ()
    return read.package


def test_all_of_it() -> None:
    package = rebuilt()
    operator = package.operator
    assert (operator.name, operator.operator_version, operator.app_version) == (
        "shop",
        "1.10",
        "2.0",
    )
    assert operator.kubernetes_version == "1.25"
    assert [task.name for task in operator.tasks] == ["app", "flag"]
    assert [step.tasks for _, step in package.plan("deploy").steps()] == [("app", "flag")]
    assert package.templates == {"app.yaml": "a: {{ .Name }}\n", "sub/b.yaml": "b: 1\n"}


@pytest.mark.parametrize("text", ["true", "1e+06", "010", "", "3.10", "- a", "a: b\n", "\u00e4 #"])
def test_a_text_stays_the_same(text: str) -> None:
    (one,) = rebuilt({"name": "A", "default": text, "required": True}).parameters
    assert one.default == text


def test_types_and_choices() -> None:
    size, zones, none = rebuilt(
        {"name": "SIZE", "value-type": "integer", "default": "3", "enum": ["3", "5"],
         "immutable": True, "trigger": "deploy"},
        {"name": "ZONES", "value-type": "array", "default": "- a\n- b\n"},
        {"name": "MAP", "value-type": "map", "default": "null\n", "required": True},
    ).parameters  # fmt: skip
    assert (size.type, size.enum, size.immutable, size.trigger) == (
        "integer",
        ("3", "5"),
        True,
        "deploy",
    )
    assert zones.default is not None
    assert decode(zones.default) == ["a", "b"]
    assert (none.default, none.required) == (None, False)


def test_a_default_that_is_no_yaml() -> None:
    with pytest.raises(ValueError, match=r"\S"):
        rebuilt({"name": "A", "value-type": "map", "default": "{a: ["})
