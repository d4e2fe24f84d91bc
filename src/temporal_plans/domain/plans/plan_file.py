"""Normalisation: from the forms in which users write a plan to the one form of ``PlanSpec``.

A plan file and the JSON input of the Plan workflow may write parameters, phases and steps as
mappings by name, and a step's work as one word (``activity: freeze_database``). ``normalise``
turns all of it into lists and ``work: {kind: ...}``. It checks nothing:
unknown parts are left for validation to refuse.
"""

from collections.abc import Callable, Mapping
from typing import cast

from temporal_plans.domain.kinds import WRITTEN
from temporal_plans.domain.plans.strategies import keeping_dependencies
from temporal_plans.domain.values.text import as_text

Json = dict[str, object]


def normalise(document: object) -> object:
    """Return the document in ``PlanSpec``'s own form. Never raises; idempotent.

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
    """Convert ``{activity: x}`` to ``{work: {kind: activity, type: x}}``."""
    step = _mapping(value)
    if step is None:
        return value
    kinds = [word for word in WRITTEN if word in step]
    if "work" not in step and len(kinds) == 1:  # else validation refuses it
        step["work"] = WRITTEN[kinds[0]].written(step.pop(kinds[0]))
    return step


def _parameter(value: object) -> object:
    parameter = _mapping(value)
    if parameter is not None:
        _replace(parameter, "default", as_text)
        return parameter
    if isinstance(value, str | int | float):
        return {"default": as_text(value)}
    return value


def _named(value: object, convert: Callable[[object], object]) -> object:
    """Convert a mapping by name to a list of entries with names; a list entry by entry."""
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


def _ordered_by_dependencies(parent: Json, children: str) -> Json:
    """Use a strategy that keeps dependencies when a child has some (``dependency``, not
    ``parallel``)."""
    entries = parent.get(children)
    if not isinstance(entries, list):
        return parent
    if not any(_has_dependencies(entry) for entry in cast(list[object], entries)):
        return parent
    strategy = parent.get("strategy")
    if isinstance(strategy, str):
        parent["strategy"] = keeping_dependencies(strategy)
        return parent
    settings = _mapping(strategy)
    if settings is not None:
        _replace(settings, "name", lambda name: keeping_dependencies(str(name)))
        parent["strategy"] = settings
    return parent


def _has_dependencies(entry: object) -> bool:
    child = _mapping(entry)
    return child is not None and bool(child.get("depends-on") or child.get("depends_on"))


def _replace(mapping: Json, key: str, convert: Callable[[object], object]) -> None:
    if key in mapping:
        mapping[key] = convert(mapping[key])


def _mapping(value: object) -> Json | None:
    """Return a copy of a mapping, None for everything else."""
    return dict(cast(Mapping[str, object], value)) if isinstance(value, Mapping) else None
