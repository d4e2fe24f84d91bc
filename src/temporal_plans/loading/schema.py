"""JSON Schemas of service files, plan files, packages and the documents of fleets, for editors.

They describe the form only; ``temporal plan validate`` and ``fleet decide`` check all rules. They
are made from the models of loading; that of plan files has in addition the short forms of
``domain.plans.plan_file``.
"""

from inspect import getdoc
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from temporal_plans.domain.fleets.results import DecideResult
from temporal_plans.domain.kinds import WRITTEN
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.loading.fleets.documents import FleetDocument
from temporal_plans.loading.packages.schema import package_schema
from temporal_plans.loading.services.file import ServiceFile

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: Literal["service", "plan", "package", "fleet", "fleet-decision"]) -> Schema:
    """Return the schema of service files (``svc.yml`` after its template is rendered), of plan
    files, of both files of packages (``operator.yaml`` and ``params.yaml``), of the documents of a
    fleet, or of the output of ``fleet decide --json``."""
    match kind:
        case "service":
            return _service_schema()
        case "plan":
            return _plan_schema()
        case "package":
            return {"$schema": _DIALECT, **package_schema()}
        case "fleet":
            return _fleet_schema()
        case "fleet-decision":
            return _fleet_decision_schema()


def _fleet_schema() -> Schema:
    documents = TypeAdapter[FleetDocument](Annotated[FleetDocument, Field(discriminator="kind")])
    schema = documents.json_schema(by_alias=True, mode="validation")
    return {"$schema": _DIALECT, **schema, "title": "Document of a fleet of Temporal Plans"}


def _fleet_decision_schema() -> Schema:
    schema = DecideResult.model_json_schema(by_alias=True, mode="serialization")
    return {"$schema": _DIALECT, **schema, "title": "Output of temporal-plan fleet decide --json"}


def _service_schema() -> Schema:
    schema = ServiceFile.model_json_schema(by_alias=True)
    kinds: Schema = schema["$defs"]
    for kind in kinds.values():
        if kind.get("type") == "object" and not kind.get("required"):
            kind["type"] = ["object", "null"]  # ``host:`` alone is a network with all defaults
    plan, phase = kinds["PlanSectionFile"], kinds["PhasePlanFile"]
    kinds["NamedParameter"] = _parameter_value(kinds["ParameterSpec"])
    _set_form(plan, "parameters", _list_or_mapping("ParameterSpec", "NamedParameter"))
    for owner in (plan, phase):
        _add_strategy_name(owner)
    return {"$schema": _DIALECT, **schema, "title": "Service file of Temporal Plans"}


def _plan_schema() -> Schema:
    schema = PlanSpec.model_json_schema(by_alias=True)
    kinds: Schema = schema["$defs"]
    step = _with_words(kinds["StepSpec"])
    phase = kinds["PhaseSpec"]
    parameter = kinds["ParameterSpec"]
    kinds |= {"StepSpec": step, "NamedStep": _named(step)}
    _set_form(phase, "steps", _list_or_mapping("StepSpec", "NamedStep"))
    kinds |= {"NamedPhase": _named(phase), "NamedParameter": _parameter_value(parameter)}
    _set_form(schema, "phases", _list_or_mapping("PhaseSpec", "NamedPhase"))
    _set_form(schema, "parameters", _list_or_mapping("ParameterSpec", "NamedParameter"))
    for owner in (schema, phase, kinds["NamedPhase"]):
        _add_strategy_name(owner)
    return {"$schema": _DIALECT, **schema, "title": "Plan file of Temporal Plans"}


def _add_strategy_name(owner: Schema) -> None:
    """Allow a strategy as a name, or as a mapping with settings."""
    options = [{"type": "string"}, {"$ref": "#/$defs/StrategySpec"}]
    _set_form(owner, "strategy", {"anyOf": options, "default": "serial"})


def _set_form(owner: Schema, name: str, form: Schema) -> None:
    """Give a property another form, and keep its description and examples."""
    texts = {key: owner["properties"][name].get(key) for key in ("description", "examples")}
    kept = {key: value for key, value in texts.items() if value is not None}
    owner["properties"][name] = {**form, **kept}


def _with_words(step: Schema) -> Schema:
    """Return the schema of a step with exactly one word of work (``activity: ...``), or
    ``work``."""
    words = {word: _work(kind) for word, kind in WRITTEN.items()}
    return {
        **step,
        "properties": {**step["properties"], **words},
        "required": [name for name in step["required"] if name != "work"],
        "oneOf": [{"required": [word]} for word in ("work", *words)],
    }


def _work(kind: type[Work]) -> Schema:
    """Return the schema of a kind of work: its settings, or the value of its main setting."""
    settings = {"$ref": f"#/$defs/{kind.__name__}"}
    types = list(kind.bare_types)
    bare: Schema = {
        "description": f"the same as {{{kind.bare}: ...}}",
        "type": types if len(types) > 1 else types[0],
    }
    return {"anyOf": [bare, settings], "description": getdoc(kind)}


def _named(entry: Schema) -> Schema:
    """Return the schema of a named entry of a mapping, whose name is its key."""
    return {**entry, "required": [name for name in entry["required"] if name != "name"]}


def _parameter_value(parameter: Schema) -> Schema:
    bare = {"type": ["string", "number", "boolean", "null"], "description": "its default"}
    return {"anyOf": [bare, _named(parameter)]}


def _list_or_mapping(entry: str, named: str) -> Schema:
    return {
        "anyOf": [
            {"type": "array", "items": {"$ref": f"#/$defs/{entry}"}},
            {"type": "object", "additionalProperties": {"$ref": f"#/$defs/{named}"}},
        ]
    }
