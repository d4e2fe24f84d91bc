"""Loads plan files, in YAML or JSON."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from temporal_plans.domain.kinds import WRITTEN
from temporal_plans.domain.plans.plan import PlanSpec, StepSpec
from temporal_plans.domain.plans.plan_check import problems as plan_problems
from temporal_plans.domain.plans.plan_file import normalise
from temporal_plans.domain.values.complaints import Location, complaints
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.forms.form import read_form
from temporal_plans.loading.text.document import Document, read_json, read_yaml
from temporal_plans.loading.text.files import read_text

_Entries = Mapping[str, object]


def load_plan(
    path: Path,
    *,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> PlanSpec:
    """Load the plan in a file; ``.json`` is read as JSON, any other as YAML.

    ``strategies`` and ``step_kinds`` are the names that the plan may use; None leaves the check to
    the worker, which knows the names that its developers registered.

    Raises SpecError with all problems of the file, or when it can't be read.
    """
    return _plan(read_document(read_text(path), path.name), path.name, strategies, step_kinds)


def load_plan_text(
    text: str,
    *,
    source: str = "plan",
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> PlanSpec:
    """Load the plan in a text, YAML or JSON; see ``load_plan``. ``source`` is its name in
    messages."""
    return _plan(read_document(text, source), source, strategies, step_kinds)


def input_problems(
    error: ValidationError, model: type[PlanSpec], document: object
) -> tuple[Reason, ...]:
    """Return the problems of a plan in JSON, the ``document``, that a ``model`` with the fields of
    a plan refused, in the words and with the paths of plan files."""
    normal = normalise(document)
    ambiguous = dict(_ambiguous_steps(normal))
    found = complaints(
        error, model, _locator(document, normal), extra_keys={StepSpec: tuple(WRITTEN)}
    )
    return (*ambiguous.values(), *(one for one in found if not _explained(one, ambiguous)))


def read_document(text: str, source: str) -> Document:
    """Read a text as YAML or JSON, without checking its meaning. Raises SpecError for a fault of
    its syntax.

    JSON is tried first where it is possible: the YAML reader refuses tabs, and JSON's errors are
    more exact.
    """
    if source.endswith(".json"):
        return read_json(text, source=source)
    if text.lstrip().startswith("{"):
        try:
            return read_json(text, source=source)
        except SpecError:
            pass  # a flow mapping of YAML
    return read_yaml(text, scalars="typed", source=source)


def _plan(
    document: Document,
    source: str,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
) -> PlanSpec:
    normal = normalise(document.value)
    form = read_form(
        PlanSpec,
        normal,
        locate=_locator(document.value, normal),
        extra_keys={StepSpec: tuple(WRITTEN)},
    )
    ambiguous = dict(_ambiguous_steps(normal))
    found = [
        *document.problems,
        *ambiguous.values(),
        *(problem for problem in form.problems if not _explained(problem, ambiguous)),
    ]
    found += form.check(lambda plan: plan_problems(plan, strategies, step_kinds, of_service=False))
    if found:
        placed = [p.but(line=p.line or document.line(p.field)) for p in found]
        raise SpecError(sorted(placed, key=lambda p: p.line or 0), source=source)
    if form.value is None:
        raise AssertionError("a plan without problems has a value")
    return form.value


def _ambiguous_steps(normal: object) -> Iterator[tuple[str, Reason]]:
    """Yield a problem for each step without work or with several, by path: one in place of
    pydantic's many."""
    for phase in _list(normal, "phases"):
        for step in _list(phase, "steps"):
            if "work" in step:
                continue
            kinds = [word for word in WRITTEN if word in step]
            path = f"phases.{phase.get('name')}.steps.{step.get('name')}"
            message = "has more than one kind of work" if kinds else "has no work"
            fix = f"write exactly one of {', '.join(WRITTEN)}"
            yield path, Reason(field=path, problem=message, value=kinds or None, fix=fix)


def _explained(problem: Reason, ambiguous: Mapping[str, Reason]) -> bool:
    step, _, key = problem.field.rpartition(".")
    return step in ambiguous and key in {"work", *WRITTEN}


def _list(owner: object, key: str) -> Iterator[_Entries]:
    """Yield the mappings in a list that is an entry of a mapping."""
    items = cast(_Entries, owner).get(key) if isinstance(owner, Mapping) else None
    for item in cast(list[object], items) if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            yield cast(_Entries, item)


def _locator(raw: object, normal: object) -> Callable[[Location], str]:
    """Return a function that makes paths as the file has them: names for positions, ``activity``
    for ``work``."""

    def locate(location: Location) -> str:
        return ".".join(_parts(raw, normal, location))

    return locate


def _parts(raw: object, normal: object, location: Location) -> Iterator[str]:
    parts = iter(location)
    for part in parts:
        if part == "[key]":
            continue
        if part == "work":
            tag = next(parts, None)
            short = tag is not None and _child(raw, "work") is None
            yield str(tag) if short else "work"
            raw = normal = None  # inside, keys are the file's own
        else:
            yield _name(raw, normal, part)
            raw, normal = _child(raw, part), _child(normal, part)


def _name(raw: object, normal: object, part: int | str) -> str:
    """Return the name of a position: the entry's ``name``, else its key in the file."""
    item = _child(normal, part)
    if isinstance(part, int) and isinstance(item, Mapping):
        name = cast(_Entries, item).get("name")
        if isinstance(name, str) and name:
            return name
    if isinstance(part, int) and isinstance(raw, Mapping):
        return list(cast(_Entries, raw))[part]
    return str(part)


def _child(value: object, part: int | str) -> object:
    """Return an entry of a mapping or list; of a mapping by key or by position."""
    if isinstance(value, Mapping):
        entries = cast(_Entries, value)
        if isinstance(part, str):
            return entries.get(part)
        return list(entries.values())[part] if part < len(entries) else None
    if isinstance(value, list | tuple) and isinstance(part, int):
        items = cast(list[object], value)
        return items[part] if part < len(items) else None
    return None
