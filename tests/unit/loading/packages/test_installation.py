"""Real packages: their definitions, their plans as plans of the engine, the plan of each change."""

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from repository import ROOT
from temporal_plans.domain.packages.changes import ChangeRequest
from temporal_plans.domain.packages.installation import (
    DEFINITION_LIMIT,
    Installation,
    PackageDefinition,
    definition_of,
)
from temporal_plans.domain.packages.parameters import Parameter
from temporal_plans.domain.packages.resolution import Resolved, resolve
from temporal_plans.loading.packages.reader import load_package
from temporal_plans.loading.packages.structures import decode

CORPUS = Path(os.environ.get("TEMPORAL_PLANS_CORPUS", ROOT / "../shared/corpus")) / "kudo"
STORE = ROOT / "examples/packages/store"

TRIGGERS: Mapping[str, Mapping[str, int]] = {
    "kafka": {
        "update-instance": 157,
        "mirrormaker": 12,
        "kafka-connect": 12,
        "cruise-control": 7,
        "external-access": 4,
        "not-allowed": 3,
        "service-monitor": 1,
        "user-workload": 1,
        "deploy": 3,
    },
    "mysql": {"backup": 1, "restore": 1, "deploy": 2},
    "zookeeper": {"not-allowed": 2, "deploy": 9},
    "rabbitmq": {"not-allowed": 1, "deploy": 7},
}
"""How many parameters start each plan."""


def installed(package: PackageDefinition) -> Installation:
    given: dict[str, str | None] = {
        one.name: another(one) for one in package.parameters if one.required and one.default is None
    }
    request = ChangeRequest(
        package=package, parameters=given, instance="a", cluster="c", namespace="n"
    )
    found = resolve(None, request, decode)
    assert isinstance(found, Resolved), str(found)
    assert found.change.plan == "deploy"
    return found.installation


def another(one: Parameter) -> str:
    """Return a value that is not the default."""
    values = {"integer": ("1", "2"), "boolean": ("true", "false"), "array": ("[]", "[a]")}
    first, second = values.get(one.type, ("x", "y"))
    choices = one.enum or (first, second)
    return next(choice for choice in choices if choice != one.default)


def definition(folder: Path) -> PackageDefinition:
    return definition_of(load_package(folder), "a" * 64)


corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="the corpus is not here (TEMPORAL_PLANS_CORPUS)"
)


@corpus
@pytest.mark.parametrize(
    "name", ["cowsay", "first-operator", "kafka", "mysql", "rabbitmq", "zookeeper"]
)
def test_packages_of_others_are_installed_and_changed(name: str) -> None:
    package = definition(CORPUS / name)
    assert len(package.model_dump_json()) < DEFINITION_LIMIT / 8
    before = installed(package)
    plans: Counter[str] = Counter()
    for one in package.parameters:
        request = ChangeRequest(parameters={one.name: another(one)})
        found = resolve(before, request, decode)
        if isinstance(found, Resolved):
            plans[found.change.plan] += 1
        else:
            assert one.immutable or not another(one), str(found)
    assert {plan: plans[plan] for plan in TRIGGERS.get(name, {})} == TRIGGERS.get(name, {})
    newer = package.but(content="b" * 64, operator=package.operator.but(operator_version="9.9.9"))
    upgraded = resolve(before, ChangeRequest(package=newer), decode)
    assert isinstance(upgraded, Resolved)
    wanted = (plan for plan in ("upgrade", "update", "deploy") if plan in package.plans)
    assert upgraded.change.plan == next(wanted)


@pytest.mark.parametrize(
    ("name", "plan"),
    [("METRICS", "metrics"), ("MEMORY", "update"), ("BACKUP", "backup"), ("RESTORE", "restore")],
)
def test_the_example_is_changed_by_triggers(name: str, plan: str) -> None:
    package = definition(STORE)
    value = another(package.by_name[name])
    found = resolve(installed(package), ChangeRequest(parameters={name: value}), decode)
    assert isinstance(found, Resolved), str(found)
    assert found.change.plan == plan
    assert package.plans["restore"].reentrant is False
