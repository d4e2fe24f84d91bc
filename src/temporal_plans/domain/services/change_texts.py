"""The texts of changed values: short ones whole, long ones cut to where they differ, texts of
several lines as the lines that differ."""

import json
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from enum import StrEnum
from itertools import islice
from typing import cast

from temporal_plans.domain.services.change import FieldChange
from temporal_plans.domain.values.model import Value, in_file_form

VALUE_LIMIT = 120
"""Characters of a value, or of a line of it, that a change shows."""

LINES_LIMIT = 40
"""Lines of a value that a change shows."""

_COMPARED_LINES_LIMIT = 2000
"""Texts of more lines are not compared line by line: the comparison may take too long for a
workflow."""

_LEAD = 20
"""Characters shown before the first difference of long values."""


def field_change(path: str, old: str | None, new: str | None) -> FieldChange:
    """Return the change of a field, given as text; None where it has no value."""
    before, after = _excerpts(old, new)
    return FieldChange(path=path, before=before, after=after, lines=_lines(old, new))


def text_of(value: object) -> str | None:
    """Return a value as readable text; None for an empty value."""
    if value is None or value == () or value == {} or value == "":
        return None
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"{value:.15g}"
    return json_of(value)


def json_of(value: object) -> str:
    """Return a value as JSON, without defaults."""
    return json.dumps(_plain(value), ensure_ascii=False, default=str)


def _plain(value: object) -> object:
    if isinstance(value, Value):
        return in_file_form(value, exclude_defaults=True)
    if isinstance(value, tuple):
        return [_plain(entry) for entry in cast(tuple[object, ...], value)]
    return value


def _lines(old: str | None, new: str | None) -> tuple[str, ...]:
    """Return the lines that differ, with a line around them, each led by ``-``, ``+`` or a blank;
    empty when neither text has several lines."""
    before, after = (old or "").splitlines(), (new or "").splitlines()
    if old is None or new is None or max(len(before), len(after)) < 2:
        return ()
    if max(len(before), len(after)) > _COMPARED_LINES_LIMIT:
        return ()
    compared = _compared(before, after)
    shown = [_cut(line) for line in islice(compared, LINES_LIMIT)]
    more = sum(1 for _ in compared)
    return (*shown, *([f"... {more} more lines"] if more else ()))


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    for line in islice(unified_diff(before, after, lineterm="", n=1), 2, None):
        yield "..." if line.startswith("@@") else line


def _cut(line: str) -> str:
    return line if len(line) <= VALUE_LIMIT else f"{line[: VALUE_LIMIT - 3]}..."


def _excerpts(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Return both, long texts cut to begin shortly before they differ: templates mostly agree."""
    if max(len(old or ""), len(new or "")) <= VALUE_LIMIT:
        return old, new
    same = 0
    for a, b in zip(old or "", new or "", strict=False):
        if a != b:
            break
        same += 1
    start = max(same - _LEAD, 0)
    return _excerpt(old, start), _excerpt(new, start)


def _excerpt(text: str | None, start: int) -> str | None:
    if text is None:
        return None
    head = "..." if start else ""
    rest = text[start:]
    room = VALUE_LIMIT - len(head)
    return head + (rest if len(rest) <= room else f"{rest[: room - 3]}...")
