"""The form of a file: validated, and repaired where it is invalid, so that all checks can run.

All problems are reported at once: an invalid value is reported, then removed or replaced by a
placeholder, and the checks continue with the repaired document. Problems that result only from the
repair are dropped.
"""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from temporal_plans.domain.kinds import KINDS
from temporal_plans.domain.values.complaints import (
    Location,
    complaints,
    dotted,
    model_at,
    unknown_keys,
)
from temporal_plans.domain.values.model import file_key
from temporal_plans.domain.values.refusal import Reason

_Model = TypeVar("_Model", bound=BaseModel)

PLACEHOLDER = "placeholder-for-an-invalid-value"
"""A text that is valid for every text field."""

_TWIN = "substitute-for-an-invalid-value"
"""Another such text: a problem that differs between the two results from a repair."""

_ROUND_LIMIT = 8
"""The repair of one level may show that the next is incomplete; no schema has more levels."""


@dataclass(frozen=True, slots=True)
class Form(Generic[_Model]):
    """A document as a model. ``value`` is None when it could not be repaired; ``repaired`` are the
    paths whose values are not the document's; ``ignored`` are unknown keys, if they are allowed.
    ``twin`` is the value with other placeholders; None when nothing was repaired."""

    value: _Model | None
    problems: tuple[Reason, ...]
    repaired: frozenset[str]
    ignored: tuple[Reason, ...] = ()
    twin: _Model | None = None

    def check(self, rules: Callable[[_Model], Iterable[Reason]]) -> list[Reason]:
        """Return the problems that ``rules`` find in the value and that are the document's, not
        results of a repair: those of ``twin`` are the same."""
        if self.value is None:
            return []
        found = list(rules(self.value))
        if self.twin is None:
            return found
        # A placeholder may be in a problem's text, for example in "use one of: ...".
        same = list(rules(self.twin))
        parents = {repaired.rpartition(".")[0] for repaired in self.repaired}
        return [
            problem
            for problem in found
            if problem in same
            and problem.field not in parents
            and not _within(problem.field, self.repaired)
        ]


def read_form(
    model: type[_Model],
    document: object,
    *,
    locate: Callable[[Location], str] = dotted,
    extra_keys: Mapping[type[BaseModel], Sequence[str]] = MappingProxyType({}),
    lenient: bool = False,
) -> Form[_Model]:
    """Read a document as a ``model``, with every problem of its form. See ``complaints`` for
    ``locate`` and ``extra_keys``. ``lenient``: unknown keys are no problem, and ignored."""
    form = _read(model, document, locate, extra_keys, lenient, PLACEHOLDER)
    if not form.repaired:
        return form
    twin = _read(model, document, locate, extra_keys, lenient, _TWIN)
    return replace(form, twin=twin.value)


def _read(
    model: type[_Model],
    document: object,
    locate: Callable[[Location], str],
    extra_keys: Mapping[type[BaseModel], Sequence[str]],
    lenient: bool,
    placeholder: str,
) -> Form[_Model]:
    problems: list[Reason] = []
    ignored: list[Reason] = []
    repaired: frozenset[str] = frozenset()
    current = copy.deepcopy(document)
    for _ in range(_ROUND_LIMIT):
        try:
            value = model.model_validate(current)
        except ValidationError as error:
            found = complaints(error, model, locate, extra_keys)
            if lenient and (unknown := unknown_keys(found, error)):
                ignored += unknown
                found = [problem for problem in found if problem not in unknown]
            problems += [problem for problem in found if not _within(problem.field, repaired)]
            repaired |= {problem.field for problem in found}
            current = _repair(model, current, error, locate, placeholder)
        else:
            return Form(value, tuple(problems), repaired, tuple(ignored))
    return Form(None, tuple(problems), repaired, tuple(ignored))


def _within(path: str, repaired: frozenset[str]) -> bool:
    return any(not other or path == other or path.startswith(f"{other}.") for other in repaired)


def _repair(
    model: type[BaseModel],
    document: object,
    error: ValidationError,
    locate: Callable[[Location], str],
    placeholder: str,
) -> object:
    """Return the document without the invalid values. The last is repaired first, so that positions
    in lists stay valid."""
    faults = error.errors(include_url=False)
    for fault in sorted(faults, key=lambda fault: _order(fault["loc"]), reverse=True):
        location = tuple(part for part in fault["loc"] if part != "[key]")
        if not location:
            return {}
        owner = _owner(document, location)
        if isinstance(owner, dict):
            entries = cast(dict[str, object], owner)
            _repair_entry(model, entries, location, fault, placeholder)
        elif isinstance(owner, list) and isinstance(location[-1], int):
            _repair_item(cast(list[object], owner), location[-1], fault, locate)
    return document


def _repair_entry(
    model: type[BaseModel],
    owner: dict[str, object],
    location: Location,
    fault: ErrorDetails,
    placeholder: str,
) -> None:
    key = str(location[-1])
    if fault["type"] == "missing":
        owner[key] = _accepted(model_at(model, location[:-1]), key, placeholder)
    elif _is_not_mapping(fault):
        owner[_key_in(owner, key)] = {}  # the name stays, because other entries may refer to it
    else:
        owner.pop(_key_in(owner, key), None)


def _repair_item(
    owner: list[object], index: int, fault: ErrorDetails, locate: Callable[[Location], str]
) -> None:
    if _is_not_mapping(fault):
        owner[index] = {"name": locate(fault["loc"]).rpartition(".")[2]}
    else:
        del owner[index]


def _is_not_mapping(fault: ErrorDetails) -> bool:
    return fault["type"] in ("model_type", "model_attributes_type")


def _candidates(placeholder: str) -> tuple[object, ...]:
    """Return the values that are tried for a missing required field: a text, a path, a number, a
    mapping of names to values that are repaired in the next round, work of a kind without required
    settings."""
    kinds = ({"kind": kind.name()} for kind in KINDS)
    return (placeholder, f"/{placeholder}", 0, 1, {placeholder: {}}, *kinds)


def _accepted(model: type[BaseModel] | None, key: str, placeholder: str) -> object:
    """Return a valid value for a missing required field: its first choice, or the first valid
    candidate."""
    fields = model.model_fields if model else {}
    names = {file_key(model, name): name for name in fields} if model else {}
    info = fields.get(names.get(key, key))
    return placeholder if info is None else copy.deepcopy(_accepted_by(info, placeholder))


def _accepted_by(info: FieldInfo, placeholder: str) -> object:
    config = ConfigDict(populate_by_name=True)
    annotation: Any = info.annotation
    model = create_model("Field", __config__=config, value=(annotation, info))
    for candidate in (*_choices(info.annotation), *_candidates(placeholder)):
        try:
            model.model_validate({"value": candidate})
        except ValidationError as error:
            if not all(_is_inside(fault, candidate, placeholder) for fault in error.errors()):
                continue
        return candidate
    return placeholder


def _choices(annotation: object) -> Sequence[object]:
    """Return the values of an enumeration or a Literal; else nothing."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [choice.value for choice in annotation]
    return ()


def _is_inside(fault: ErrorDetails, candidate: object, placeholder: str) -> bool:
    """Return whether the fault is inside a mapping, which the next round repairs."""
    return isinstance(candidate, dict) and placeholder in fault["loc"]


def _key_in(owner: Mapping[str, object], key: str) -> str:
    """Return the key as the file has it: locations are kebab-case, files may use snake_case."""
    snake = key.replace("-", "_")
    return snake if key not in owner and snake in owner else key


def _owner(document: object, location: Location) -> object:
    """Return the mapping or list with the last part of a location."""
    for part in location[:-1]:
        document = _step(document, part)
    return document


def _step(value: object, part: int | str) -> object:
    if isinstance(value, dict):
        entries = cast(dict[str, object], value)
        key = _key_in(entries, str(part))
        if key not in entries and part == entries.get("kind"):
            return entries  # the tag of a union, not a key
        if entries.get(key) is None:
            entries[key] = {}  # null means an empty mapping, in which an entry is missing
        return entries[key]
    if isinstance(value, list) and isinstance(part, int):
        return cast(list[object], value)[part]
    return None


def _order(location: Location) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in location)
