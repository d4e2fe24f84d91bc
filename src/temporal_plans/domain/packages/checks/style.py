"""Checks of what people read about parameters. They are asked for one by one."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from temporal_plans.domain.packages.checks.subject import Check, Subject
from temporal_plans.domain.packages.findings import Finding, warning
from temporal_plans.domain.packages.package import PARAMETERS_FILE

_ENDS = (".", "!", "?")


def _display(subject: Subject) -> Iterator[Finding]:
    for one in subject.package.parameters:
        yield from _display_name(f"parameters.{one.name}", one.display_name)


def _description(subject: Subject) -> Iterator[Finding]:
    for one in subject.package.parameters:
        yield from _description_text(f"parameters.{one.name}", one.description)


def _hint(subject: Subject) -> Iterator[Finding]:
    for one in subject.package.parameters:
        field = f"parameters.{one.name}.hint"
        if not one.hint:
            yield _warning(field, "is missing")
        elif not one.hint.endswith("."):
            yield _warning(field, "does not end with a period", one.hint)


def _type(subject: Subject) -> Iterator[Finding]:
    for one in subject.package.parameters:
        if not one.type:
            yield _warning(f"parameters.{one.name}.type", "is missing")


def _has_group(subject: Subject) -> Iterator[Finding]:
    for one in subject.package.parameters:
        if not one.group:
            yield _warning(f"parameters.{one.name}.group", "is missing")


def _groups(subject: Subject) -> Iterator[Finding]:
    for group in subject.package.groups:
        yield from _display_name(f"groups.{group.name}", group.display_name)
        yield from _description_text(f"groups.{group.name}", group.description)


STYLES: Mapping[str, Check] = MappingProxyType(
    {
        "display": Check("style-display", _display),
        "description": Check("style-description", _description),
        "hint": Check("style-hint", _hint),
        "type": Check("style-type", _type),
        "has-group": Check("style-has-group", _has_group),
        "groups": Check("style-groups", _groups),
    }
)
"""By the names that the command line has for them. Each finds warnings only."""


def _display_name(path: str, text: str) -> Iterator[Finding]:
    field = f"{path}.displayName"
    if not text:
        yield _warning(field, "is missing")
        return
    if text.endswith(":"):
        yield _warning(field, "ends with a colon", text)
    if not text[0].isupper():
        yield _warning(field, "does not begin with a capital letter", text)


def _description_text(path: str, text: str) -> Iterator[Finding]:
    field = f"{path}.description"
    if not text:
        yield _warning(field, "is missing")
        return
    if not text.rstrip().endswith(_ENDS):
        yield _warning(field, "does not end as a sentence does", text)
    if not text[0].isupper():
        yield _warning(field, "does not begin with a capital letter", text)


def _warning(field: str, problem: str, value: str | None = None) -> Finding:
    return warning(PARAMETERS_FILE, field, problem, value=value)
