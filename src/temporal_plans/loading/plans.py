"""Loading a plan file: our own form for operations, YAML or the same as JSON."""

from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import cast

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.plan import PlanSpec, StepSpec
from temporal_plans.domain.plan_check import problems as plan_problems
from temporal_plans.domain.plan_file import WORDS, normalise
from temporal_plans.loading.complaints import Location
from temporal_plans.loading.document import Document, read_json, read_yaml
from temporal_plans.loading.form import read_form
from temporal_plans.loading.service import read_text

_Entries = Mapping[str, object]


def load_plan(
    path: Path,
    *,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> PlanSpec:
    """The plan in a file; ``.json`` is read as JSON, everything else as YAML.

    ``strategies`` and ``step_kinds`` are the names that may be used; None leaves that to the
    worker, which knows what its developers registered.

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
    """The plan in a text, YAML or JSON; see ``load_plan``."""
    return _plan(read_document(text, source), source, strategies, step_kinds)


def read_document(text: str, source: str) -> Document:
    """What is in a text, whatever it means. Raises SpecError for a fault of its syntax.

    JSON where it is that: our YAML reader takes no tabs, and JSON's errors say more.
    """
    if source.endswith(".json"):
        return read_json(text, source=source)
    if text.lstrip().startswith("{"):
        try:
            return read_json(text, source=source)
        except SpecError:
            pass  # YAML's own braces
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
        extra_keys={StepSpec: tuple(WORDS)},
    )
    unclear = dict(_unclear_steps(normal))
    found = [
        *document.problems,
        *unclear.values(),
        *(problem for problem in form.problems if not _explained(problem, unclear)),
    ]
    if form.value is not None:
        checks = plan_problems(form.value, strategies, step_kinds, of_service=False)
        found += [problem for problem in checks if form.genuine(problem)]
    if found:
        placed = [p.but(line=p.line or document.line(p.path)) for p in found]
        raise SpecError(sorted(placed, key=lambda p: p.line or 0), source=source)
    if form.value is None:
        raise AssertionError("a plan without problems has a value")
    return form.value


def _unclear_steps(normal: object) -> Iterator[tuple[str, Problem]]:
    """Steps that say no work or several, by path: one clear problem in place of pydantic's many."""
    for phase in _list(normal, "phases"):
        for step in _list(phase, "steps"):
            if "work" in step:
                continue
            kinds = [word for word in WORDS if word in step]
            path = f"phases.{phase.get('name')}.steps.{step.get('name')}"
            message = "has more than one kind of work" if kinds else "says no work"
            fix = f"write exactly one of {', '.join(WORDS)}"
            yield path, Problem(path=path, message=message, value=kinds or None, fix=fix)


def _explained(problem: Problem, unclear: Mapping[str, Problem]) -> bool:
    step, _, key = problem.path.rpartition(".")
    return step in unclear and key in {"work", *WORDS}


def _list(owner: object, key: str) -> Iterator[_Entries]:
    """The mappings in a list of a mapping, if there are any."""
    items = cast(_Entries, owner).get(key) if isinstance(owner, Mapping) else None
    for item in cast(list[object], items) if isinstance(items, list) else ():
        if isinstance(item, Mapping):
            yield cast(_Entries, item)


def _locator(raw: object, normal: object) -> Callable[[Location], str]:
    """Paths as the file's writer knows them: names for positions, ``activity`` for ``work``."""

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
    """A position's name: what the entry says, else the key it has in the file."""
    item = _child(normal, part)
    if isinstance(part, int) and isinstance(item, Mapping):
        name = cast(_Entries, item).get("name")
        if isinstance(name, str) and name:
            return name
    if isinstance(part, int) and isinstance(raw, Mapping):
        return list(cast(_Entries, raw))[part]
    return str(part)


def _child(value: object, part: int | str) -> object:
    """The entry of a mapping or list; of a mapping by name also by position."""
    if isinstance(value, Mapping):
        entries = cast(_Entries, value)
        if isinstance(part, str):
            return entries.get(part)
        return list(entries.values())[part] if part < len(entries) else None
    if isinstance(value, list | tuple) and isinstance(part, int):
        items = cast(list[object], value)
        return items[part] if part < len(items) else None
    return None
