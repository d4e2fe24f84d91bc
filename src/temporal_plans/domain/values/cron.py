"""Checks of cron expressions, as Temporal's schedules read them.

They are for the words: the server checks an expression as well, and may refuse more.
"""

import re
from collections.abc import Iterator

from temporal_plans.domain.values.refusal import Reason

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

_SECOND = ("the second", 0, 59, ())
_FIVE = (
    ("the minute", 0, 59, ()),
    ("the hour", 0, 23, ()),
    ("the day of the month", 1, 31, ()),
    ("the month", 1, 12, _MONTHS),
    ("the day of the week", 0, 7, _DAYS),
)
_YEAR = ("the year", 2000, 2100, ())
_FIELDS = {5: _FIVE, 6: (*_FIVE, _YEAR), 7: (_SECOND, *_FIVE, _YEAR)}
"""What the fields are called, their bounds and names, by the number of fields."""

_ZONE = re.compile(r"(?:CRON_)?TZ=\S+\s+")
_FIX = "write minute, hour, day of month, month, day of week, for example '0 3 * * *'"


def cron_problems(expression: str, path: str) -> Iterator[Reason]:
    """Yield the problems of an expression: of five fields, six (with a year), or seven (with
    seconds and a year). Shorthands such as ``@daily`` are left to the server."""
    text = _ZONE.sub("", expression.partition("#")[0].strip())
    if text.startswith("@"):
        return
    fields = text.split()
    known = _FIELDS.get(len(fields))
    if known is None:
        problem = f"has {len(fields)} fields, not 5, 6 or 7"
        yield Reason(field=path, problem=problem, value=expression, fix=_FIX)
        return
    for field, (name, low, high, words) in zip(fields, known, strict=True):
        if not all(_fits(part, low, high, words) for part in field.split(",")):
            by_name = f", or a name such as {words[0].upper()}" if words else ""
            yield Reason(
                field=path,
                problem=f"{name} is {field!r}",
                value=expression,
                fix=f"write *, a number from {low} to {high}{by_name}, a range or a list",
            )


def _fits(part: str, low: int, high: int, words: tuple[str, ...]) -> bool:
    """Return whether ``1``, ``1-5``, ``*`` or ``1-5/2`` is within the bounds."""
    span, slash, step = part.partition("/")
    if slash and not (step.isdecimal() and int(step[:9]) > 0):
        return False
    return span in ("*", "?") or all(_is_value(end, low, high, words) for end in span.split("-", 1))


def _is_value(text: str, low: int, high: int, words: tuple[str, ...]) -> bool:
    if text.isdecimal():
        return low <= int(text[:9]) <= high
    return text[:3].lower() in words and text.isalpha()
