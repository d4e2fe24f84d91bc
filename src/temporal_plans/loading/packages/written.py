"""The two files of a package as they are written, converted to the form of their models."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from temporal_plans.domain.packages.package import OPERATOR_FILE
from temporal_plans.domain.packages.parameters import STRUCTURED
from temporal_plans.domain.packages.printing import printed
from temporal_plans.domain.packages.tasks import BY_NAME
from temporal_plans.domain.packages.tasks.custom import CustomTask
from temporal_plans.domain.values.complaints import Location
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.structures import encode
from temporal_plans.loading.text.document import Document
from temporal_plans.loading.text.plain_scalars import yaml_1_1

_Entries = Mapping[str, object]

_VERSION = re.compile("operatorVersion|appVersion|kudoVersion|kubernetesVersion")
_PARAMETER_TEXT = re.compile(r"parameters\.\d+\.(default|enum\.\d+)")
_SAME = frozenset({"true", "false"})


def operator_form(value: object) -> object:
    """Return the content of operator.yaml in the form of ``Operator``: each task with the fields of
    its spec."""
    return _with_list(value, "tasks", _task)


def parameters_form(value: object) -> object:
    """Return the content of params.yaml in the form of ``Parameters``: each default, and each value
    to choose from, is a text."""
    return _with_list(value, "parameters", _parameter)


def locator(raw: object) -> Callable[[Location], str]:
    """Return a function that makes paths as the file has them: an entry with a name of its own
    stands by its name, and the fields of tasks below ``spec``."""

    def locate(location: Location) -> str:
        parts = [part for part in location if part != "[key]"]
        if parts[:1] == ["tasks"] and len(parts) > 3:
            inside = "spec" if parts[3] not in ("name", "kind", "spec") else ""
            parts[2:3] = [inside] if inside else []
        elif parts[:1] == ["tasks"] and len(parts) == 3:
            del parts[2]
        return ".".join(_named(raw, parts))

    return locate


def with_names(raw: object, path: str) -> str:
    """Return a path in which entries with a name of their own stand by it."""
    return ".".join(_named(raw, list(_location(path))))


def indexed(raw: object, path: str) -> str:
    """Return a path in which entries of lists stand by their positions, not by their names."""
    parts: list[str] = []
    for part in path.split("."):
        names = [] if part.isdigit() else _names(raw)
        parts.append(str(names.index(part)) if part in names else part)
        raw = _child(raw, parts[-1])
    return ".".join(parts)


def doubts(document: Document, name: str) -> Iterator[Reason]:
    """Yield a reason for each text of a package file that is not what it looks like, because it has
    no quotes (``3.10`` is ``3.1``), or because its parameter has no type for lists."""
    locate = locator(document.value)
    pattern = _VERSION if name == OPERATOR_FILE else _PARAMETER_TEXT
    for path, text in document.plain.items():
        seen = printed(yaml_1_1(text))
        if pattern.fullmatch(path) and seen != text and text.lower() not in _SAME:
            yield Reason(
                field=locate(_location(path)),
                problem=f"is read as {seen}",
                value=text,
                fix=f'quote it ("{text}") if it is a text',
                line=document.line(path),
            )
    for index, parameter in enumerate(_list(document.value, "parameters")):
        default = parameter.get("default")
        if isinstance(default, list | dict) and parameter.get("type") not in STRUCTURED:
            wanted = "array" if isinstance(default, list) else "map"
            yield Reason(
                field=locate(("parameters", index, "default")),
                problem=f"is read as the text {printed(cast(object, default))}",
                fix=f"write type: {wanted}",
            )


def _task(task: _Entries) -> object:
    kind, spec = task.get("kind"), task.get("spec")
    outer = {key: entry for key, entry in task.items() if key not in ("kind", "spec")}
    if not isinstance(kind, str | None):
        return task
    if kind not in BY_NAME:
        return {**outer, "kind": CustomTask.kind_name(), "type": kind, "spec": spec}
    if spec is not None and not isinstance(spec, Mapping):
        return {**outer, "kind": kind, "spec": spec}  # reported as an unknown key
    return {**cast(_Entries, spec or {}), **outer, "kind": kind}


def _parameter(parameter: _Entries) -> object:
    structured = parameter.get("type") in STRUCTURED
    changed = dict(parameter)
    if (default := parameter.get("default")) is not None:
        changed["default"] = _wrapped(default, structured)
    if isinstance(choices := parameter.get("enum"), list):
        items = cast(list[object], choices)
        changed["enum"] = [_wrapped(item, structured) for item in items]
    return changed


def _wrapped(value: object, structured: bool) -> str:
    return encode(value) if structured else printed(value)


def _with_list(value: object, key: str, change: Callable[[_Entries], object]) -> object:
    """Return a mapping in which the mappings of one of its lists are changed."""
    if not isinstance(value, Mapping):
        return value
    entries = cast(_Entries, value)
    items = entries.get(key)
    if not isinstance(items, list):
        return entries
    changed = [
        change(cast(_Entries, item)) if isinstance(item, Mapping) else item
        for item in cast(list[object], items)
    ]
    return {**entries, key: changed}


def _list(value: object, key: str) -> Iterator[_Entries]:
    items = cast(_Entries, value).get(key) if isinstance(value, Mapping) else None
    for item in cast(list[object], items) if isinstance(items, list) else ():
        yield cast(_Entries, item) if isinstance(item, Mapping) else {}


def _location(path: str) -> Location:
    return tuple(int(part) if part.isdigit() else part for part in path.split("."))


def _named(raw: object, parts: list[int | str]) -> Iterator[str]:
    """Yield the parts of a path, names for positions."""
    for part in parts:
        yield _name(raw, part)
        raw = _child(raw, str(part))


def _name(raw: object, part: int | str) -> str:
    if not isinstance(part, int):
        return part
    names = _names(raw)
    own = names[part] if part < len(names) else ""
    return own if own and Counter(names)[own] == 1 else str(part)


def _names(raw: object) -> list[str]:
    """Return the names of the entries of a list, empty texts for those without one."""
    items = cast(list[object], raw) if isinstance(raw, list) else []
    return [_own_name(item) for item in items]


def _own_name(item: object) -> str:
    name = cast(_Entries, item).get("name") if isinstance(item, Mapping) else None
    return name if isinstance(name, str) else ""


def _child(raw: object, part: str) -> object:
    if isinstance(raw, Mapping):
        return cast(_Entries, raw).get(part)
    if isinstance(raw, list) and part.isdigit():
        items = cast(list[object], raw)
        return items[int(part)] if int(part) < len(items) else None
    return None
