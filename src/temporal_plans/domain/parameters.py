"""Parameters of a plan: their declarations, the values given, and where the values go."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from temporal_plans.domain import patterns
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.names import suggestion
from temporal_plans.domain.plan import ParameterSpec

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""A parameter becomes an environment variable of the tasks that it reaches (reference 5.5)."""

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

Arguments = dict[str, str]


def declaration_problems(declared: Sequence[ParameterSpec], path: str) -> Iterator[Problem]:
    """Faults of the declarations themselves, at ``path``.``name``."""
    seen: set[str] = set()
    for parameter in declared:
        where = f"{path}.{parameter.name}"
        if parameter.name in seen:
            yield Problem(path=where, message="is declared twice", value=parameter.name)
        seen.add(parameter.name)
        if parameter.required and parameter.default is not None:
            yield Problem(
                path=f"{where}.default",
                message="a required parameter's default is never used",
                value=parameter.default,
                fix="remove default, or required",
            )
        yield from _pattern_problems(parameter, where)


def _pattern_problems(parameter: ParameterSpec, where: str) -> Iterator[Problem]:
    if parameter.pattern is None:
        return
    try:
        patterns.check(parameter.pattern)
    except patterns.PatternError as error:
        yield Problem(
            path=f"{where}.pattern",
            message=f"is not a regular expression: {error}",
            value=parameter.pattern,
        )
        return
    if parameter.default is not None and not patterns.matches(parameter.pattern, parameter.default):
        yield Problem(
            path=f"{where}.default",
            message=f"does not match the parameter's own pattern {parameter.pattern}",
            value=parameter.default,
        )


def check_arguments(
    declared: Sequence[ParameterSpec] | None, given: Mapping[str, str]
) -> tuple[Arguments, tuple[Problem, ...]]:
    """The values that the plan runs with, defaults filled in, and what is wrong with them.

    ``declared`` None takes any name of the right form; an empty sequence takes none. An optional
    parameter without a default stays away, so that a task's own ``env`` can supply it.
    """
    if declared is None:
        return dict(given), tuple(_undeclared_form(given))
    known = {parameter.name: parameter for parameter in declared}
    problems = [
        Problem(
            path=f"parameters.{name}",
            message="the plan declares no such parameter",
            value=value,
            fix=suggestion(name, known) or "the plan takes no parameters",
        )
        for name, value in given.items()
        if name not in known
    ]
    values: Arguments = {}
    for name, parameter in known.items():
        value = given.get(name, parameter.default)
        if value is None:
            if parameter.required:
                problems.append(_missing(parameter))
            continue
        values[name] = value
        problems += _mismatch(parameter, value)
    return values, tuple(problems)


def _undeclared_form(given: Mapping[str, str]) -> Iterator[Problem]:
    for name, value in given.items():
        if not NAME.fullmatch(name):
            yield Problem(
                path=f"parameters.{name}",
                message="is not a name for a parameter",
                value=value,
                fix="use letters, digits and _, not starting with a digit",
            )


def _missing(parameter: ParameterSpec) -> Problem:
    hint = f" ({parameter.description})" if parameter.description else ""
    return Problem(
        path=f"parameters.{parameter.name}", message=f"the plan needs this parameter{hint}"
    )


def _mismatch(parameter: ParameterSpec, value: str) -> list[Problem]:
    if parameter.pattern is None or patterns.matches(parameter.pattern, value):
        return []
    return [
        Problem(
            path=f"parameters.{parameter.name}",
            message=f"does not match {parameter.pattern}",
            value=value,
        )
    ]


def substitute(value: Any, arguments: Mapping[str, str]) -> Any:
    """The value with ``${NAME}`` replaced in all its strings, keys aside.

    ``$${`` stands for a literal ``${``. Names without a value are left as they are: they may mean
    something to whoever receives the text. Replaced text is not looked at again.
    """
    if isinstance(value, str):
        return _REFERENCE.sub(lambda match: _replacement(match, arguments), value)
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, Any]", value)
        return {key: substitute(entry, arguments) for key, entry in entries.items()}
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        return [substitute(item, arguments) for item in items]
    return value


def _replacement(match: re.Match[str], arguments: Mapping[str, str]) -> str:
    name: str | None = match[1]
    if name is None:
        return "${"
    return arguments.get(name, match[0])
