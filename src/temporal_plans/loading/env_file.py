"""Files of ``NAME=value`` lines: the values that a service file is rendered with."""

from temporal_plans.domain.errors import Problem, SpecError


def parse_env_file(text: str, *, source: str = "env file") -> dict[str, str]:
    """The values by name. Empty lines and lines that start with ``#`` are skipped.

    A value is everything behind the first ``=``, without the space around it; one pair of quotes
    around the whole value is removed. The last line of a name wins.

    Raises SpecError with every line that is neither.
    """
    values: dict[str, str] = {}
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), start=1):
        entry = line.strip().removeprefix("export ")
        if not entry or entry.startswith("#"):
            continue
        name, equals, value = entry.partition("=")
        if not equals or not name.strip() or " " in name.strip():
            problems.append(
                Problem(path="", message="is not NAME=value", value=line.strip(), line=number)
            )
            continue
        values[name.strip()] = _unquoted(value.strip())
    if problems:
        raise SpecError(problems, source=source)
    return values


def _unquoted(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
