"""From the ways people write a plan to the one form that ``PlanSpec`` has.

A plan file and the JSON input of the Plan workflow may write parameters, phases and steps as
mappings by name, and a step's work as one word (``activity: freeze_database``). ``normalise``
turns all of it into lists and ``work: {kind: ...}``. It judges nothing: what it doesn't know it
leaves for validation to refuse.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

Json = dict[str, object]


def normalise(document: object) -> object:
    """The document in ``PlanSpec``'s own form. Never raises; a normal document comes back equal.

    >>> normalise({"name": "p", "phases": {"a": {"steps": {"s": {"sleep": 5}}}}})["phases"]
    [{'name': 'a', 'steps': [{'name': 's', 'work': {'kind': 'sleep', 'duration': 5}}]}]
    """
    plan = _mapping(document)
    if plan is None:
        return document
    _replace(plan, "parameters", lambda value: _named(value, _parameter))
    _replace(plan, "phases", lambda value: _named(value, _phase))
    return _ordered_by_dependencies(plan, "phases")


def _phase(value: object) -> object:
    phase = _mapping(value)
    if phase is None:
        return value
    _replace(phase, "steps", lambda steps: _named(steps, _step))
    return _ordered_by_dependencies(phase, "steps")


def _step(value: object) -> object:
    """``{activity: x}`` as ``{work: {kind: activity, type: x}}``."""
    step = _mapping(value)
    if step is None:
        return value
    kinds = [word for word in WORDS if word in step]
    if "work" not in step and len(kinds) == 1:  # else validation refuses it
        step["work"] = _work(kinds[0], step.pop(kinds[0]))
    _replace(step, "work", _plain_environment)
    return step


def _work(kind: str, value: object) -> object:
    settings = _mapping(value)
    if settings is not None:
        return {**settings, "kind": kind}
    if kind == "approval" and (value is True or value is None):
        return {"kind": kind}
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return {"kind": kind, WORDS[kind]: value}
    return value


def _plain_environment(value: object) -> object:
    work = _mapping(value)
    if work is None:
        return value
    if work.get("kind") == "command":
        _replace(work, "env", _texts)
    return work


def _parameter(value: object) -> object:
    parameter = _mapping(value)
    if parameter is not None:
        _replace(parameter, "default", _text)
        return parameter
    if isinstance(value, str | int | float):
        return {"default": _text(value)}
    return value


def _named(value: object, convert: Callable[[object], object]) -> object:
    """A mapping by name as a list of entries with their name; lists entry by entry."""
    entries = _mapping(value)
    if entries is not None:
        return [_with_name(name, convert(entry)) for name, entry in entries.items()]
    if isinstance(value, list | tuple):
        return [convert(entry) for entry in cast(list[object], value)]
    return value


def _with_name(name: str, entry: object) -> object:
    if entry is None:
        return {"name": name}
    settings = _mapping(entry)
    return entry if settings is None else {"name": name, **settings}


_HONOURS = MappingProxyType({"parallel": "dependency", "parallel-canary": "dependency-canary"})


def _ordered_by_dependencies(parent: Json, children: str) -> Json:
    """The strategy ``dependency`` is "everything at once, but b after a"; ``parallel`` is not."""
    entries = parent.get(children)
    if not isinstance(entries, list):
        return parent
    if not any(_has_dependencies(entry) for entry in cast(list[object], entries)):
        return parent
    strategy = parent.get("strategy")
    if isinstance(strategy, str):
        parent["strategy"] = _HONOURS.get(strategy, strategy)
        return parent
    settings = _mapping(strategy)
    if settings is not None:
        _replace(settings, "name", lambda name: _HONOURS.get(str(name), name))
        parent["strategy"] = settings
    return parent


def _has_dependencies(entry: object) -> bool:
    child = _mapping(entry)
    return child is not None and bool(child.get("depends-on") or child.get("depends_on"))


def _texts(value: object) -> object:
    entries = _mapping(value)
    if entries is None:
        return value
    return {name: _text(entry) for name, entry in entries.items()}


def _text(value: object) -> object:
    """Scalars as text: an environment has nothing else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, int | float) else value
    except ValueError:  # Python refuses to print numbers of thousands of digits
        return value


def _replace(mapping: Json, key: str, convert: Callable[[object], object]) -> None:
    if key in mapping:
        mapping[key] = convert(mapping[key])


def _mapping(value: object) -> Json | None:
    """A copy of a mapping, None for everything else."""
    return dict(cast(Mapping[str, object], value)) if isinstance(value, Mapping) else None


WORDS: Mapping[str, str] = MappingProxyType(
    {
        "activity": "type",
        "workflow": "type",
        "command": "cmd",
        "approval": "message",
        "sleep": "duration",
        "custom": "type",
    }
)
"""The words that say a step's work, and the field that a bare value stands for."""
