"""The form of a file: validated, and mended where it is wrong so that the checks can go on.

A compiler that stops at the first error makes people compile twenty times. So a value that its
schema refuses is reported, then left out or replaced by a stand-in, and the rest of the file is
checked against the mended one. What is found only because of the mending is dropped.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Generic, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from temporal_plans.domain.errors import Problem
from temporal_plans.loading.complaints import Location, complaints, dotted, model_at

_Model = TypeVar("_Model", bound=BaseModel)

STAND_IN = "stand-in-for-what-is-wrong"
"""A text that is valid wherever text is. Nobody means it, so a fault that names it comes from
mending."""

_STAND_INS: Mapping[str, object] = MappingProxyType(
    {
        "pods": {STAND_IN: {}},
        "tasks": {STAND_IN: {}},
        "phases": {STAND_IN: {}},
        "work": {"kind": "approval"},
        "duration": 0,
        "index": 0,
        "host-path": f"/{STAND_IN}",
    }
)
"""Valid values for required fields for which ``_stand_in`` finds none."""

_ROUNDS = 8
"""Mending one level may show that the next is incomplete; no schema has more levels."""


@dataclass(frozen=True, slots=True)
class Form(Generic[_Model]):
    """``value`` is None when nothing could be made of the document. ``mended``: the paths whose
    values are not the writer's.
    """

    value: _Model | None
    problems: tuple[Problem, ...]
    mended: frozenset[str]

    def genuine(self, problem: Problem) -> bool:
        """Whether a fault found in ``value`` is the writer's own, not a result of mending."""
        path = problem.path
        if STAND_IN in f"{problem} {problem.value}":
            return False  # for example "use one of: ..." where everything to use was refused
        parents = {mended.rpartition(".")[0] for mended in self.mended}
        return path not in parents and not _within(path, self.mended)


def read_form(
    model: type[_Model],
    document: object,
    *,
    locate: Callable[[Location], str] = dotted,
    extra_keys: Mapping[type[BaseModel], Sequence[str]] = MappingProxyType({}),
) -> Form[_Model]:
    """The document as a ``model``, with every fault of its form. See ``complaints``."""
    problems: list[Problem] = []
    mended: frozenset[str] = frozenset()
    current = copy.deepcopy(document)
    for _ in range(_ROUNDS):
        try:
            value = model.model_validate(current)
        except ValidationError as error:
            found = complaints(error, model, locate, extra_keys)
            problems += [problem for problem in found if not _within(problem.path, mended)]
            mended |= {problem.path for problem in found}
            current = _mend(model, current, error, locate)
        else:
            return Form(value, tuple(problems), mended)
    return Form(None, tuple(problems), mended)


def _within(path: str, mended: frozenset[str]) -> bool:
    return any(not other or path == other or path.startswith(f"{other}.") for other in mended)


def _mend(
    model: type[BaseModel],
    document: object,
    error: ValidationError,
    locate: Callable[[Location], str],
) -> object:
    """The document without the refused values. Back to front, so that list positions hold."""
    faults = error.errors(include_url=False)
    for fault in sorted(faults, key=lambda fault: _order(fault["loc"]), reverse=True):
        location = tuple(part for part in fault["loc"] if part != "[key]")
        if not location:
            return {}
        owner = _owner(document, location)
        if isinstance(owner, dict):
            _mend_entry(model, cast(dict[str, object], owner), location, fault)
        elif isinstance(owner, list) and isinstance(location[-1], int):
            _mend_item(cast(list[object], owner), location[-1], fault, locate)
    return document


def _mend_entry(
    model: type[BaseModel], owner: dict[str, object], location: Location, fault: ErrorDetails
) -> None:
    key = str(location[-1])
    if fault["type"] == "missing":
        owner[key] = _stand_in(model_at(model, location[:-1]), key)
    elif _is_no_mapping(fault):
        owner[_written(owner, key)] = {}  # the name stays: others may refer to it
    else:
        owner.pop(_written(owner, key), None)


def _mend_item(
    owner: list[object], index: int, fault: ErrorDetails, locate: Callable[[Location], str]
) -> None:
    if _is_no_mapping(fault):
        owner[index] = {"name": locate(fault["loc"]).rpartition(".")[2]}
    else:
        del owner[index]


def _is_no_mapping(fault: ErrorDetails) -> bool:
    return fault["type"] in ("model_type", "model_attributes_type")


def _stand_in(model: type[BaseModel] | None, key: str) -> object:
    """A valid value for a required field: its first choice, its bound, or one that we know."""
    fields = model.model_fields if model else {}
    info = next((info for name, info in fields.items() if key in (name, info.alias)), None)
    if info is not None:
        if get_origin(info.annotation) is Literal:
            return get_args(info.annotation)[0]
        if isinstance(info.annotation, type) and issubclass(info.annotation, Enum):
            return next(iter(info.annotation)).value
        for bound in info.metadata:
            if getattr(bound, "ge", None) is not None:
                return bound.ge
            if getattr(bound, "gt", None) is not None:
                return 1
    return copy.deepcopy(_STAND_INS.get(key, STAND_IN))


def _written(owner: Mapping[str, object], key: str) -> str:
    """The key as the file has it: locations are kebab-case, both are accepted."""
    snake = key.replace("-", "_")
    return snake if key not in owner and snake in owner else key


def _owner(document: object, location: Location) -> object:
    """The mapping or list that has the last part of a location in it."""
    for part in location[:-1]:
        document = _step(document, part)
    return document


def _step(value: object, part: int | str) -> object:
    if isinstance(value, dict):
        entries = cast(dict[str, object], value)
        key = _written(entries, str(part))
        if key not in entries and part == entries.get("kind"):
            return entries  # the tag of a union, not a key
        if entries.get(key) is None:
            entries[key] = {}  # what null stands for where something is missing inside
        return entries[key]
    if isinstance(value, list) and isinstance(part, int):
        return cast(list[object], value)[part]
    return None


def _order(location: Location) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in location)
