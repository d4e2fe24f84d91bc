"""The JSON Schema of the files of packages, as they are written."""

from typing import Any

from pydantic.json_schema import models_json_schema

from temporal_plans.domain.packages.package import Operator
from temporal_plans.domain.packages.parameters import Parameters
from temporal_plans.domain.packages.plans import ANY_PLAN
from temporal_plans.domain.packages.tasks import TASK_KINDS

_Schema = dict[str, Any]

_OUTSIDE = ("name", "kind")
"""The keys of a task beside its spec."""


def package_schema() -> _Schema:
    """Return the schema of ``operator.yaml`` and of ``params.yaml``: a file is one of them."""
    models = [(model, "validation") for model in (Operator, Parameters)]
    _, schema = models_json_schema(models, by_alias=True, title="Files of packages")  # type: ignore[arg-type]
    kinds: _Schema = schema["$defs"]
    names = [kind.__name__ for kind in TASK_KINDS]
    for name in names:
        kinds[name] = _task(kinds[name])
    kinds["CustomTask"] = _custom(kinds["CustomTask"], [kind.kind_name() for kind in TASK_KINDS])
    options = [{"$ref": f"#/$defs/{name}"} for name in (*names, "CustomTask")]
    kinds["Operator"]["properties"]["tasks"]["items"] = {"anyOf": options}
    kinds["PackagePlan"]["properties"] |= _plan_keys(kinds["PackagePlan"]["properties"])
    for parent in ("PackagePhase", "PackageStep"):
        fields = kinds[parent]["properties"]
        fields["depends-on"] = fields["dependsOn"]
    value = kinds["Parameter"]["properties"]
    value["default"] = {"description": value["default"]["description"]}
    value["enum"] = {"description": value["enum"]["description"], "type": "array"}
    return {**schema, "anyOf": [{"$ref": "#/$defs/Operator"}, {"$ref": "#/$defs/Parameters"}]}


def _plan_keys(fields: _Schema) -> _Schema:
    """Return the keys of plans that may be written in two ways, in both of them."""
    lists, _null = fields["conflictsWith"].pop("anyOf")
    conflicts = {**fields["conflictsWith"], "anyOf": [lists, {"const": ANY_PLAN}]}
    del conflicts["default"]  # every other plan, which has no form of its own
    return {
        "conflictsWith": conflicts,
        "conflicts-with": conflicts,
        "on-error": fields["onError"],
    }


def _task(model: _Schema) -> _Schema:
    """Return a kind of tasks as files have it: its own fields stand below ``spec``."""
    fields: _Schema = model["properties"]
    spec = {key: field for key, field in fields.items() if key not in _OUTSIDE}
    return {
        "description": model["description"],
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "kind"],
        "properties": {
            "name": fields["name"],
            "kind": {"const": fields["kind"]["const"]},
            "spec": {"type": "object", "additionalProperties": False, "properties": spec},
        },
    }


def _custom(model: _Schema, known: list[str]) -> _Schema:
    fields: _Schema = model["properties"]
    return {
        "description": model["description"],
        "type": "object",
        "required": ["name", "kind"],
        "properties": {
            "name": fields["name"],
            "kind": {"type": "string", "not": {"enum": known}},
            "spec": fields["spec"],
        },
    }
