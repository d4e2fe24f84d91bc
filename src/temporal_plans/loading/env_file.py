"""Files of ``NAME=value`` lines: the values that a service file is rendered with."""

from collections.abc import Iterator, Sequence

from temporal_plans.domain.errors import Problem, SpecError

_SHOWN = 3
"""Faults that are told one by one: a file of another kind has one in every line."""


def parse_env_file(text: str, *, source: str = "env file") -> dict[str, str]:
    """The values by name. Empty lines and lines that start with ``#`` are skipped.

    A value is everything behind the first ``=``, without the space around it; one pair of quotes
    around the whole value is removed. The last line of a name wins.

    Raises SpecError with the numbers of lines that are neither. What they say is left out: values
    may be secrets, and messages end up in logs.
    """
    values: dict[str, str] = {}
    faulty: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.strip().removeprefix("export ")
        if not entry or entry.startswith("#"):
            continue
        name, equals, value = entry.partition("=")
        if not equals or not name.strip() or " " in name.strip():
            faulty.append(number)
            continue
        values[name.strip()] = _unquoted(value.strip())
    if faulty:
        raise SpecError(_problems(faulty), source=source)
    return values


def _problems(lines: Sequence[int]) -> Iterator[Problem]:
    for line in lines[:_SHOWN]:
        fix = "write # in front of a comment"
        yield Problem(path="", message="the line is not NAME=value", fix=fix, line=line)
    if len(lines) > _SHOWN:
        yield Problem(path="", message=f"and {len(lines) - _SHOWN} more")


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
