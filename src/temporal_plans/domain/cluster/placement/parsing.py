"""Reading the ``placement`` of a pod (behaviour 9.8).

Four ways to write it: one JSON row ``["hostname", "UNIQUE"]``, a JSON list of rows, the colon form
``hostname:MAX_PER:2,rack:LIKE:r-.*`` (a backslash escapes ``,`` ``:`` and itself; blanks around
tokens do not count), and a JSON object, which is what ``str`` of a rule gives.
"""

import json
from collections.abc import Callable, Sequence
from typing import cast

from pydantic import TypeAdapter, ValidationError

from temporal_plans.domain.cluster.placement.matching import Matcher
from temporal_plans.domain.cluster.placement.rules import (
    And,
    AnyRule,
    GroupBy,
    MaxPer,
    Not,
    Rule,
    Where,
)
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError

_FORMS = (
    'write [["hostname", "UNIQUE"]] or hostname:UNIQUE, each row a field, an operator and, '
    "where it takes one, a parameter"
)
_TYPED: TypeAdapter[AnyRule] = TypeAdapter(AnyRule)


class PlacementError(RefusedError):
    """A placement that can't be read, for one reason."""

    def __init__(self, text: str, problem: str, fix: str) -> None:
        self._reason = Reason(field="placement", problem=problem, value=text, fix=fix)
        super().__init__(Refusal(code=Code.INVALID, reasons=(self._reason,)))

    def at(self, field: str) -> Reason:
        """Return the reason for a placement in that field."""
        return self._reason.but(field=field)


class _Problem(Exception):
    """A fault of a row, raised where the whole text is not known."""

    def __init__(self, problem: str, fix: str = _FORMS) -> None:
        super().__init__(problem)
        self.problem = problem
        self.fix = fix


def parse_placement(text: str | None) -> Rule | None:
    """Return the rule that a text describes, None for no rule (empty, or ``[]``).

    Raises PlacementError.
    """
    stripped = (text or "").strip()
    if not stripped:
        return None
    try:
        if stripped.startswith("{"):
            return _typed(stripped)
        rows = _json_rows(stripped) if stripped.startswith("[") else _colon_rows(stripped)
        rules = tuple(_rule(row) for row in rows)
    except _Problem as error:
        raise PlacementError(stripped, error.problem, error.fix) from None
    if not rules:
        return None
    return rules[0] if len(rules) == 1 else And(rules=rules)


def _typed(text: str) -> Rule:
    try:
        return _TYPED.validate_json(text)
    except ValidationError as error:
        details = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'rule'}: {one['msg']}" for one in error.errors()
        )
        raise _Problem(
            details, "write the JSON object that str() of a placement rule gives"
        ) from None


def _json_rows(text: str) -> list[list[str]]:
    try:
        parsed = cast(list[object], json.loads(text))  # a list: it starts with a bracket
    except (ValueError, RecursionError) as error:
        raise _Problem(f"is not JSON ({error})") from None
    if parsed and not any(isinstance(row, list) for row in parsed):
        parsed = [parsed]
    rows: list[list[str]] = []
    for row in parsed:
        if not isinstance(row, list):
            raise _Problem(f"{row!r} is not a row")
        rows.append([_token(token) for token in cast(list[object], row)])
    return rows


def _token(token: object) -> str:
    if isinstance(token, str):
        return token.strip()
    if isinstance(token, int | float) and not isinstance(token, bool):
        return str(token)  # ["hostname", "MAX_PER", 2]
    raise _Problem(f"{token!r} is not a string")


def _colon_rows(text: str) -> list[list[str]]:
    rows: list[list[str]] = [[]]
    token = ""
    characters = iter(text)
    for character in characters:
        if character == "\\":
            following = next(characters, "\\")
            token += following if following in ",:\\" else "\\" + following  # \d stays \d
        elif character in ",:":
            rows[-1].append(token.strip())
            token = ""
            if character == ",":
                rows.append([])
        else:
            token += character
    rows[-1].append(token.strip())
    return rows


def _rule(row: Sequence[str]) -> AnyRule:
    if len(row) not in (2, 3):
        raise _Problem(f"row {':'.join(row)!r} has {len(row)} parts, not 2 or 3")
    field, name = row[0], row[1].upper()
    if not field:
        raise _Problem(f"row {':'.join(row)!r} has no field")
    if name not in OPERATORS:
        raise _Problem(f"operator {row[1]!r} is unknown", "known are " + ", ".join(OPERATORS))
    try:
        return OPERATORS[name](field, row[2] if len(row) == 3 else None)
    except ValidationError as error:
        raise _Problem(f"row {':'.join(row)!r}: {error.errors()[0]['msg']}") from None


def _unique(field: str, parameter: str | None) -> AnyRule:
    return MaxPer(field=field, max=1, required=not _built_in(field))


def _is(field: str, parameter: str | None) -> AnyRule:
    return Where(field=field, matcher=Matcher(kind="exact", text=_wanted("IS", parameter)))


def _cluster(field: str, parameter: str | None) -> AnyRule:
    return Where(field=field, matcher=Matcher(kind="exact", text=_wanted("CLUSTER", parameter)))


def _is_not(field: str, parameter: str | None) -> AnyRule:
    text = _wanted("IS_NOT", parameter)
    if _built_in(field):  # an agent without a zone is in no zone that differs (behaviour 9.8)
        return Where(field=field, matcher=Matcher(kind="not-exact", text=text))
    return Not(rule=Where(field=field, matcher=Matcher(kind="exact", text=text)))


def _like(field: str, parameter: str | None) -> AnyRule:
    return Where(field=field, matcher=Matcher(kind="regex", text=_wanted("LIKE", parameter)))


def _unlike(field: str, parameter: str | None) -> AnyRule:
    text = _wanted("UNLIKE", parameter)
    return Not(rule=Where(field=field, matcher=Matcher(kind="regex", text=text)))


def _max_per(field: str, parameter: str | None) -> AnyRule:
    return MaxPer(field=field, max=_number("MAX_PER", _wanted("MAX_PER", parameter)))


def _group_by(field: str, parameter: str | None) -> AnyRule:
    distinct = None if parameter is None else _number("GROUP_BY", parameter)
    return GroupBy(field=field, distinct=distinct)


OPERATORS: dict[str, Callable[[str, str | None], AnyRule]] = {
    "UNIQUE": _unique,
    "CLUSTER": _cluster,
    "IS": _is,
    "IS_NOT": _is_not,
    "LIKE": _like,
    "UNLIKE": _unlike,
    "MAX_PER": _max_per,
    "GROUP_BY": _group_by,
}
"""Every operator, by its name in upper case."""


def _built_in(field: str) -> bool:
    return field in ("hostname", "@hostname", "@zone", "@region")


def _wanted(operator: str, parameter: str | None) -> str:
    if not parameter:
        raise _Problem(f"{operator} needs a parameter", f"write field:{operator}:parameter")
    return parameter


def _number(operator: str, parameter: str) -> int:
    if not (parameter.isascii() and parameter.isdigit() and len(parameter) < 10):
        raise _Problem(
            f"{operator} takes a whole number, not {parameter!r}", f"write field:{operator}:2"
        )
    return int(parameter)
