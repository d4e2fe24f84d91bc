"""The Kubernetes objects in a rendered text."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.text.document import read_yaml

_SEPARATOR = re.compile(r"(?:^|\n)---[^\n]*")

OBJECT_LIMIT = 1_000
"""Objects of one template."""

KubernetesObject = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Objects:
    """The objects of a text in their order, what makes documents of it unreadable, and what was
    read although it is hardly meant. Lines are those of the rendered text."""

    objects: tuple[KubernetesObject, ...] = ()
    faults: tuple[Reason, ...] = ()
    doubts: tuple[Reason, ...] = ()


def read_objects(text: str) -> Objects:
    """Return the objects in a text of YAML documents. Documents without any content are left out:
    a template may give nothing."""
    objects: list[KubernetesObject] = []
    faults: list[Reason] = []
    doubts: list[Reason] = []
    for number, (first, document) in enumerate(_documents(text)):
        if number >= OBJECT_LIMIT:
            faults.append(Reason(problem=f"gives more than {OBJECT_LIMIT} objects"))
            break
        try:
            read = read_yaml(document, scalars="yaml-1.1", source="")
        except SpecError as error:
            faults += [_moved(reason, first) for reason in error.reasons]
            continue
        doubts += [_moved(reason, first) for reason in read.problems]
        if fault := _fault(read.value):
            faults.append(_moved(fault.but(line=read.lines.get("", 1)), first))
        elif read.value is not None:
            objects.append(cast(KubernetesObject, read.value))
    return Objects(tuple(objects), tuple(faults), tuple(doubts))


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document that has content, with the number of lines before it."""
    start = line = 0
    for separator in [*_SEPARATOR.finditer(text), None]:
        document = text[start : separator.start() if separator else len(text)]
        if any(line.strip() and not line.lstrip().startswith("#") for line in document.split("\n")):
            yield line, document
        if separator:
            line += text.count("\n", start, separator.end())
            start = separator.end()


def _fault(value: object) -> Reason | None:
    """Return why a document is no object; None when it is one, or null."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        return Reason(problem="is no object: not a mapping", value=value)
    entries = cast(Mapping[str, object], value)
    for key in ("apiVersion", "kind"):
        if not isinstance(entries.get(key), str) or not entries[key]:
            return Reason(field=key, problem="is missing", value=entries.get(key))
    return None


def _moved(reason: Reason, before: int) -> Reason:
    """Return a reason with its line in all of the text."""
    return reason if reason.line is None else reason.but(line=reason.line + before)
