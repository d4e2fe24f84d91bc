"""Reads files of fleet documents; every problem has its field and its line."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from temporal_plans.domain.values.model import Value
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.fleets.documents import DOCUMENTS, FleetDocument
from temporal_plans.loading.forms.form import read_form
from temporal_plans.loading.text.document import Document, read_json, read_yaml_stream
from temporal_plans.loading.text.files import read_text

SIZE_LIMIT = 10_000_000
"""Characters of a file."""


@dataclass(frozen=True, slots=True)
class FleetFile:
    """A document with the text that it stands in, for the places of later problems."""

    value: FleetDocument
    document: Document
    source: str

    def problem(self, reason: Reason) -> Reason:
        """Return a problem with its line."""
        return reason.but(line=reason.line or self.document.line(reason.field))


def load_documents(paths: Iterable[Path]) -> tuple[FleetFile, ...]:
    """Return the documents of files, in order; YAML files may have several, divided by ``---``.
    Raises SpecError with all problems of the first file that has any."""
    return tuple(one for path in paths for one in read_documents(read_text(path), path.name))


def read_documents(text: str, source: str) -> tuple[FleetFile, ...]:
    """Return the documents of a text. Raises SpecError with all its problems."""
    if len(text) > SIZE_LIMIT:
        reason = Reason(field="", problem=f"has more than {SIZE_LIMIT} characters")
        raise SpecError([reason], source=source)
    as_json = source.endswith(".json")
    documents = (
        [read_json(text, source=source)] if as_json else read_yaml_stream(text, source=source)
    )
    problems: list[Reason] = []
    found: list[FleetFile] = []
    for document in documents:
        value = _value(document, problems)
        if value is not None:
            found.append(FleetFile(value, document, source))
    if problems:
        raise SpecError(problems, source=source)
    return tuple(found)


def _value(document: Document, problems: list[Reason]) -> FleetDocument | None:
    problems += document.problems
    if not isinstance(document.value, dict):
        text = "must be a mapping with a kind"
        problems.append(Reason(field="", problem=text, line=document.line("") or 1))
        return None
    kind = cast(dict[str, object], document.value).get("kind")
    model = DOCUMENTS.get(kind) if isinstance(kind, str) else None
    if model is None:
        fix = suggestion(kind, DOCUMENTS) if isinstance(kind, str) else ""
        problem = "is missing" if kind is None else "is no kind of document"
        line = document.line("kind") or document.lines.get("", 1)
        problems.append(
            Reason(
                field="kind",
                problem=problem,
                value=kind,
                fix=fix or f"use one of: {', '.join(DOCUMENTS)}",
                line=line,
            )
        )
        return None
    form = read_form(cast(type[Value], model), cast(object, document.value))
    problems += [one.but(line=one.line or document.line(one.field)) for one in form.problems]
    return None if form.problems else cast(FleetDocument, form.value)
