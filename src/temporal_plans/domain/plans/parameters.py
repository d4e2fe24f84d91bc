"""Parameters of a plan: their declarations, given values, and substitution."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from temporal_plans.domain.plans.plan import ParameterSpec
from temporal_plans.domain.values import patterns
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
"""The form of a parameter's name: it becomes an environment variable of tasks (behaviour 5.5)."""

_REFERENCE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

Arguments = dict[str, str]


def declaration_problems(declared: Sequence[ParameterSpec], path: str) -> Iterator[Reason]:
    """Yield the faults of the declarations, at ``path``.``name``."""
    seen: set[str] = set()
    for parameter in declared:
        where = f"{path}.{parameter.name}"
        if parameter.name in seen:
            yield Reason(field=where, problem="is declared twice", value=parameter.name)
        seen.add(parameter.name)
        if parameter.required and parameter.default is not None:
            yield Reason(
                field=f"{where}.default",
                problem="a required parameter's default is never used",
                value=parameter.default,
                fix="remove default, or required",
            )
        yield from _pattern_problems(parameter, where)


def _pattern_problems(parameter: ParameterSpec, where: str) -> Iterator[Reason]:
    if parameter.pattern is None:
        return
    try:
        patterns.check(parameter.pattern)
    except patterns.PatternError as error:
        yield Reason(
            field=f"{where}.pattern",
            problem=f"is not a regular expression: {error}",
            value=parameter.pattern,
        )
        return
    if parameter.default is not None and not patterns.matches(parameter.pattern, parameter.default):
        yield Reason(
            field=f"{where}.default",
            problem=f"does not match the parameter's own pattern {parameter.pattern}",
            value=parameter.default,
        )


def check_arguments(
    declared: Sequence[ParameterSpec] | None, given: Mapping[str, str]
) -> tuple[Arguments, tuple[Reason, ...]]:
    """Return the values that the plan runs with, defaults filled in, and their faults.

    ``declared`` None takes any name of the right form; an empty sequence takes none. An optional
    parameter without a default is left out, so that a task's own ``env`` can supply it.
    """
    if declared is None:
        return dict(given), tuple(_undeclared_form(given))
    known = {parameter.name: parameter for parameter in declared}
    problems = [
        Reason(
            field=f"parameters.{name}",
            problem="the plan declares no such parameter",
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


def _undeclared_form(given: Mapping[str, str]) -> Iterator[Reason]:
    for name, value in given.items():
        if not NAME.fullmatch(name):
            yield Reason(
                field=f"parameters.{name}",
                problem="is not a name for a parameter",
                value=value,
                fix="use letters, digits and _, not starting with a digit",
            )


def _missing(parameter: ParameterSpec) -> Reason:
    hint = f" ({parameter.description})" if parameter.description else ""
    return Reason(
        field=f"parameters.{parameter.name}", problem=f"the plan needs this parameter{hint}"
    )


def _mismatch(parameter: ParameterSpec, value: str) -> list[Reason]:
    if parameter.pattern is None or patterns.matches(parameter.pattern, value):
        return []
    return [
        Reason(
            field=f"parameters.{parameter.name}",
            problem=f"does not match {parameter.pattern}",
            value=value,
        )
    ]


def substitute(value: Any, arguments: Mapping[str, str]) -> Any:
    """Return the value with ``${NAME}`` replaced in all its strings, keys aside.

    ``$${`` stands for a literal ``${``. Names without a value are left as they are: the receiver of
    the text may know them. Replaced text is not scanned again.
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


def escaped(value: Any) -> Any:
    """Return JSON of which ``substitute`` makes this value again, whatever stands in its texts."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, Mapping):
        return {key: escaped(one) for key, one in cast(Mapping[str, Any], value).items()}
    if isinstance(value, list | tuple):
        return [escaped(one) for one in cast(Sequence[Any], value)]
    return value


def _replacement(match: re.Match[str], arguments: Mapping[str, str]) -> str:
    name: str | None = match[1]
    if name is None:
        return "${"
    return arguments.get(name, match[0])
