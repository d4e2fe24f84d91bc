"""Packages and installations for the tests of changes and of admission."""

from collections.abc import Mapping
from typing import Any

from temporal_plans.domain.packages.installation import (
    Installation,
    PackageDefinition,
    Switches,
)
from temporal_plans.domain.packages.package import Operator
from temporal_plans.domain.packages.parameters import Parameter

WORK: Mapping[str, Any] = {
    "strategy": "serial",
    "phases": [{"name": "main", "strategy": "serial", "steps": [{"name": "all", "tasks": ["t"]}]}],
}
"""A plan with one step."""


def plans(*names: str, **more: Mapping[str, Any]) -> dict[str, Any]:
    """Return plans with one step each, some with more keys."""
    return {name: {**WORK, **more.get(name, {})} for name in (*names, *more)}


def definition(
    content: str = "a",
    *,
    plans: Mapping[str, Any],
    version: str = "1.0.0",
    application: str = "",
    name: str = "store",
    **parameters: Any,
) -> PackageDefinition:
    """Return a package; parameters by name, not required unless they say so."""
    operator = Operator(
        name=name,
        operator_version=version,
        app_version=application,
        tasks=({"name": "t", "kind": "Dummy", "done": True},),  # type: ignore[arg-type]
        plans=dict(plans),
    )
    return PackageDefinition(
        content=content * 64,
        operator=operator,
        parameters=tuple(
            Parameter.model_validate({"name": key, "required": False, **fields})
            for key, fields in parameters.items()
        ),
    )


def installed(
    package: PackageDefinition,
    given: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    switches: Switches = Switches(),  # noqa: B008  # immutable
) -> Installation:
    return Installation(
        package=package,
        instance="shop",
        cluster="east",
        namespace="prod",
        given=dict(given or {}),
        secrets=dict(secrets or {}),
        switches=switches,
    )
