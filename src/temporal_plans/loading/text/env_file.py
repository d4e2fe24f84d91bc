"""Files of ``NAME=value`` lines, with the values for the template of a service file."""

from collections.abc import Iterator, Sequence

from temporal_plans.domain.values.refusal import Reason, SpecError

_REPORTED_LINE_LIMIT = 3
"""Invalid lines that are reported one by one: a file of another type has one in every line."""


def parse_env_file(text: str, *, source: str = "env file") -> dict[str, str]:
    """Return the values by name. Empty lines and lines that start with ``#`` are skipped.

    A value is the text after the first ``=``, without surrounding space; a pair of quotes around
    the whole value is removed. The last line of a name has precedence.

    Raises SpecError with the numbers of all other lines, but not their text: values may be secrets,
    and messages are logged.
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


def _problems(lines: Sequence[int]) -> Iterator[Reason]:
    for line in lines[:_REPORTED_LINE_LIMIT]:
        fix = "begin a comment with #"
        yield Reason(field="", problem="the line is not NAME=value", fix=fix, line=line)
    if len(lines) > _REPORTED_LINE_LIMIT:
        yield Reason(field="", problem=f"and {len(lines) - _REPORTED_LINE_LIMIT} more")


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
