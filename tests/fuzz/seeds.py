"""Valid messages to every door of the workflows: those of the recorded histories, and of the models
of doors that no recorded history has."""

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter
from temporalio import workflow

from temporal_plans.worker.plugin import WORKFLOWS

HISTORIES = sorted((Path(__file__).parents[1] / "replay" / "histories").glob("*/*.json"))


class Door(NamedTuple):
    """A way into a workflow: ``kind`` is start, signal, update or query."""

    workflow: str
    kind: str
    name: str
    model: Any

    def __str__(self) -> str:
        return "-".join(part for part in (self.workflow, self.kind, self.name) if part)


def doors() -> list[Door]:
    """Return all doors of our workflows, from the SDK's definitions of them."""
    return [door for kind in WORKFLOWS for door in _doors(kind)]


def _doors(kind: type) -> Iterator[Door]:
    definition = workflow._Definition.must_from_class(kind)  # pyright: ignore[reportPrivateUsage]
    name = str(definition.name)
    yield Door(name, "start", "", _first(definition.arg_types))
    for way, handlers in (
        ("signal", definition.signals),
        ("update", definition.updates),
        ("query", definition.queries),
    ):
        for handler, of in handlers.items():
            if handler is not None:
                yield Door(name, way, handler, _first(of.arg_types))


def _first(types: Sequence[Any] | None) -> Any:
    return types[0] if types else None


@cache
def recorded() -> Mapping[tuple[str, str, str], list[Any]]:
    """Return the inputs of the recorded histories by workflow type, kind and name."""
    found: dict[tuple[str, str, str], list[Any]] = {}
    for path in HISTORIES:
        events = json.loads(path.read_text(encoding="utf-8"))["history"]["events"]
        of = events[0]["workflowExecutionStartedEventAttributes"]["workflowType"]["name"]
        for event in events:
            for way, name, payloads in _inputs(event):
                for payload in payloads:
                    value = json.loads(base64.b64decode(payload["data"]))
                    found.setdefault((of, way, name), []).append(value)
    return found


def _inputs(event: Mapping[str, Any]) -> Iterator[tuple[str, str, list[Any]]]:
    if started := event.get("workflowExecutionStartedEventAttributes"):
        yield "start", "", started.get("input", {}).get("payloads", [])
    if signaled := event.get("workflowExecutionSignaledEventAttributes"):
        payloads = signaled.get("input", {}).get("payloads", [])
        yield "signal", signaled["signalName"], payloads
    if accepted := event.get("workflowExecutionUpdateAcceptedEventAttributes"):
        given = accepted["acceptedRequest"]["input"]
        yield "update", given["name"], given.get("args", {}).get("payloads", [])


AT = "2026-01-05T12:00:00Z"
HERE = {"entity": "web", "number": 1, "at": AT}
GIVEN: Mapping[str, list[Any]] = {
    "Environment-update-command": [
        {"entity": "web", "command": "enforce-version", "version": "1.0.0", "reason": "why"},
        {"entity": "web", "command": "restart", "reason": "why"},
    ],
    "Environment-update-resolve": [
        {"entity": "web", "outcome": "FAILED", "version": "1.0.0"},
        {"entity": "web", "outcome": "SUCCEEDED", "nothing_installed": True},
    ],
    "Environment-update-override": [
        {"id": "o", "entity": "web", "admits": "downtime", "start": AT, "duration": "1h"}
    ],
    "Environment-update-suppress": [
        {"id": "s", "entity": "web", "start": AT, "end": "2026-01-06T12:00:00Z", "reason": "why"},
        {"duration": 60, "cancel_active": True},
    ],
    "Environment-update-cancel": [{"entity": "web", "suppress": "30m"}, {}],
    "Environment-update-spoke_report": [
        {
            "lineage": "l",
            "record": "r",
            "starter": "s",
            "plans": {"web.1": {**HERE, "started": True, "progress": ["a step"]}},
            "entities": [{"entity": "web", "number": 1, "health": "ERROR", "message": "m"}],
        }
    ],
    "Environment-query-explanation": [{"entity": "web", "at": AT}],
    "Environment-query-explain": [{"entity": "web", "at": AT}],
    "Product-query-explain": [{"version": "1.0.0", "at": AT}],
    "Product-query-release": [{"version": "1.0.0"}],
    "Product-update-pipeline": [
        {
            "pipeline": {
                "product": "a:b",
                "stages": [
                    {"source": "DEV", "target": "beta", "timed": {"soak": "1h"}},
                    {
                        "source": "beta",
                        "target": "stable",
                        "canary": {
                            "promote": {"percent": 50, "soak": "1h"},
                            "recall": {"count": 1, "soak": "1m"},
                        },
                    },
                ],
            }
        }
    ],
    "Spoke-update-end": [{"lineage": "l", "record": "r", "starter": "s", **HERE}],
}
"""Valid inputs beside the recorded ones, and in the place of those that a model makes up."""


def valid(door: Door) -> list[Any]:
    """Return valid inputs of the door: recorded ones and those given here, else those of other
    doors with its model, else one that the model itself makes up."""
    known = recorded().get((door.workflow, door.kind, door.name), [])
    if known := [*known, *GIVEN.get(str(door), [])]:
        return known
    if others := _of_the_model(door.model):
        return others
    if door.model is None:
        return [{}]
    return [made_up(TypeAdapter(door.model).json_schema())]


def _of_the_model(model: Any) -> list[Any]:
    """Return the recorded inputs of all doors with a model."""
    known = recorded()
    alike = (one for one in doors() if model is not None and one.model == model)
    return [input for one in alike for input in known.get((one.workflow, one.kind, one.name), [])]


def made_up(schema: Mapping[str, Any]) -> Any:
    """Return a document for a JSON Schema: all its properties, each with a simple value."""
    return _value(schema, schema.get("$defs", {}), 0)


def _value(schema: Mapping[str, Any], defs: Mapping[str, Any], depth: int) -> Any:
    if depth > 6:
        return None
    if "$ref" in schema:
        return _value(defs[schema["$ref"].rpartition("/")[2]], defs, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _value(schema[several][0], defs, depth + 1)
    match schema.get("type"):
        case "object":
            properties = schema.get("properties", {})
            return {name: _value(of, defs, depth + 1) for name, of in properties.items()}
        case "array":
            return [_value(schema["items"], defs, depth + 1)] if schema.get("items") else []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
        case "null":
            return None
        case _:
            return "2026-01-01T00:00:00Z" if schema.get("format") == "date-time" else "a"


def models() -> list[type[BaseModel]]:
    """Return the models of all doors, each once."""
    found = {door.model: None for door in doors()}
    return [one for one in found if isinstance(one, type) and issubclass(one, BaseModel)]
