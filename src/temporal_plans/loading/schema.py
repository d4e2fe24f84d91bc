"""JSON Schemas of the two kinds of files, for editors.

They describe form only; ``temporal plan validate`` knows all rules. Both come from the models that
loading validates with; the plan file's adds the short forms that ``domain.plan_file`` takes.
"""

from typing import Any, Literal

from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.plan_file import WORDS
from temporal_plans.loading.service_file import ServiceFile

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: Literal["service", "plan"]) -> Schema:
    """The schema of service files (``svc.yml``, once its template is rendered) or plan files."""
    return _service_schema() if kind == "service" else _plan_schema()


def _service_schema() -> Schema:
    schema = ServiceFile.model_json_schema(by_alias=True)
    kinds: Schema = schema["$defs"]
    for kind in kinds.values():
        if kind.get("type") == "object" and not kind.get("required"):
            kind["type"] = ["object", "null"]  # ``dcos:`` alone is a network with all defaults
    plan, phase = kinds["PlanSectionFile"], kinds["PhasePlanFile"]
    kinds["NamedParameter"] = _parameter_value(kinds["ParameterSpec"])
    plan["properties"]["parameters"] = _list_or_mapping("ParameterSpec", "NamedParameter")
    for owner in (plan, phase):
        _add_strategy_name(owner)
    return {"$schema": _DIALECT, **schema, "title": "Service file of Temporal Plans"}


def _plan_schema() -> Schema:
    schema = PlanSpec.model_json_schema(by_alias=True)
    kinds: Schema = schema["$defs"]
    step = _with_words(kinds["StepSpec"])
    phase = kinds["PhaseSpec"]
    parameter = kinds["ParameterSpec"]
    kinds["CommandWork"]["properties"]["env"]["additionalProperties"] = {
        "type": ["string", "number", "boolean"]
    }
    kinds |= {"StepSpec": step, "NamedStep": _named(step)}
    phase["properties"]["steps"] = _list_or_mapping("StepSpec", "NamedStep")
    kinds |= {"NamedPhase": _named(phase), "NamedParameter": _parameter_value(parameter)}
    schema["properties"]["phases"] = _list_or_mapping("PhaseSpec", "NamedPhase")
    schema["properties"]["parameters"] = _list_or_mapping("ParameterSpec", "NamedParameter")
    for owner in (schema, phase, kinds["NamedPhase"]):
        _add_strategy_name(owner)
    return {"$schema": _DIALECT, **schema, "title": "Plan file of Temporal Plans"}


def _add_strategy_name(owner: Schema) -> None:
    """A strategy is its name, or a mapping with its settings."""
    options = [{"type": "string"}, {"$ref": "#/$defs/StrategySpec"}]
    owner["properties"]["strategy"] = {"anyOf": options, "default": "serial"}


def _with_words(step: Schema) -> Schema:
    """A step with ``activity: ...`` and the like, of which it has exactly one, or ``work``."""
    words = {word: _work(word, field) for word, field in WORDS.items()}
    return {
        **step,
        "properties": {**step["properties"], **words},
        "required": [name for name in step["required"] if name != "work"],
        "oneOf": [{"required": [word]} for word in ("work", *words)],
    }


def _work(word: str, field: str) -> Schema:
    """A kind of work: its settings, or the one value that says it all."""
    settings = {"$ref": f"#/$defs/{word.capitalize()}Work"}
    bare: Schema = {"description": f"the same as {{{field}: ...}}"}
    bare["type"] = {"sleep": ["string", "number"], "approval": ["string", "boolean", "null"]}.get(
        word, "string"
    )
    return {"anyOf": [bare, settings]}


def _named(entry: Schema) -> Schema:
    """An entry of a mapping: its key is its name."""
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
