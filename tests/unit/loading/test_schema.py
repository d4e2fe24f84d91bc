"""The schemas for editors: they take what loading takes, and catch slips of the keyboard."""

import re
from pathlib import Path
from typing import Any, cast

import pytest

from repository import ROOT
from temporal_plans.loading.schema import json_schema
from temporal_plans.loading.text.document import read_yaml
from temporal_plans.loading.text.env_file import parse_env_file
from temporal_plans.loading.text.mustache import render

EXAMPLES = ROOT / "examples"
SERVICE = json_schema("service")
PLAN = json_schema("plan")

_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
}


def valid(value: Any, schema: Any, root: Any) -> bool:
    """JSON Schema, as far as our schemas use it."""
    if schema is True or schema == {}:
        return True
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return valid(value, root["$defs"][name], root)
    if "type" in schema and not _typed(value, schema["type"]):
        return False
    if "anyOf" in schema and not any(valid(value, option, root) for option in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(valid(value, option, root) for option in schema["oneOf"]) != 1:
        return False
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return False
    if isinstance(value, dict):
        return _valid_object(cast(dict[str, object], value), schema, root)
    if isinstance(value, list):
        items = cast(list[object], value)
        return all(valid(item, schema.get("items", True), root) for item in items)
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    return not isinstance(value, int | float) or _within(value, schema)


def _typed(value: Any, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return any(
        isinstance(value, _TYPES[name])
        if name in _TYPES
        else number and (name == "number" or value == int(value))
        for name in names
    )


def _valid_object(value: dict[str, object], schema: Any, root: Any) -> bool:
    known = schema.get("properties", {})
    other = schema.get("additionalProperties", True)
    if any(name not in value for name in schema.get("required", ())):
        return False
    for key, entry in value.items():
        wanted = known.get(key, other)
        if wanted is False or not valid(entry, wanted, root):
            return False
    return True


def _within(value: float, schema: Any) -> bool:
    return bool(
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and value > schema.get("exclusiveMinimum", value - 1)
    )


def read(text: str) -> Any:
    return read_yaml(text, scalars="typed", source="t").value


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("plans/*.yml")), ids=lambda path: path.name)
def test_takes_the_example_plans(path: Path) -> None:
    assert valid(read(path.read_text()), PLAN, PLAN)


@pytest.mark.parametrize(
    "path",
    [EXAMPLES / "hello-world/svc.yml", *sorted(EXAMPLES.glob("services/*.yml"))],
    ids=lambda path: path.name,
)
def test_takes_the_example_services(path: Path) -> None:
    env = parse_env_file((EXAMPLES / "hello-world/hello-world.env").read_text())
    text = render(path.read_text(), env, strict=True, name=path.name)
    assert valid(read(text), SERVICE, SERVICE)


PLAIN_SERVICE = """
name: s
pods:
  p:
    count: 1
    tasks:
      t: {goal: RUNNING, cmd: x, cpus: 0.5, env: {A: 1, B: true, C: }, labels: "a:b"}
    networks: {host: }
plans:
  deploy: {strategy: {name: waves, waves: [1]}, phases: {x: {pod: p}}, parameters: {A: 3}}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("count: 1", "count: many", id="type"),
        pytest.param("count: 1", "cout: 1", id="key"),
        pytest.param("count: 1", "count: -1", id="bound"),
        pytest.param("RUNNING", "RUN", id="choice"),
        pytest.param(", cmd: x", "", id="missing"),
        pytest.param("cpus: 0.5", "cpus: 0", id="zero"),
        pytest.param("cpus: 0.5", "volume: {path: a/b, size: 1}", id="pattern"),
    ],
)
def test_catches_slips_in_services(old: str, new: str) -> None:
    assert valid(read(PLAIN_SERVICE), SERVICE, SERVICE)
    assert not valid(read(PLAIN_SERVICE.replace(old, new)), SERVICE, SERVICE)


PLAIN_PLAN = """
name: p
parameters: {A: 1, B: {required: true}}
strategy: {name: max-parallel, limit: 2}
phases:
  q:
    strategy: serial
    depends-on: []
    steps:
      a: {activity: freeze}
      b: {sleep: 3, depends-on: [a]}
      c: {work: {kind: approval}}
      d: {command: {cmd: x, env: {N: 1}}}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("name: p", "nme: p", id="key"),
        pytest.param("activity: freeze", "activity: 3", id="activity-form"),
        pytest.param("activity: freeze", "activty: freeze", id="word"),
        pytest.param("activity: freeze", "activity: freeze, sleep: 3", id="two-works"),
        pytest.param("kind: approval", "kind: nap", id="kind"),
        pytest.param("cmd: x, ", "", id="missing"),
        pytest.param("limit: 2", "limit: 0", id="bound"),
    ],
)
def test_catches_slips_in_plans(old: str, new: str) -> None:
    assert valid(read(PLAIN_PLAN), PLAN, PLAN)
    assert not valid(read(PLAIN_PLAN.replace(old, new)), PLAN, PLAN)


@pytest.mark.parametrize("schema", [SERVICE, PLAN], ids=["service", "plan"])
def test_keys_are_kebab_case_and_references_resolve(schema: dict[str, Any]) -> None:
    names = {"object": schema, **schema["$defs"]}
    for kind in names.values():
        for option in [kind, *kind.get("anyOf", ())]:
            assert not [key for key in option.get("properties", {}) if "_" in key]
    wanted = set(re.findall(r"#/\$defs/(\w+)", str(schema)))
    assert wanted <= set(schema["$defs"])
