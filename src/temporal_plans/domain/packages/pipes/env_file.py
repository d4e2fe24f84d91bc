"""Files of NAME=VALUE lines."""

import re
from collections.abc import Iterator

from temporal_plans.domain.packages.pipes.pod import is_key
from temporal_plans.domain.values.refusal import Reason, SpecError

ENTRIES_LIMIT = 1_000
REASONS_LIMIT = 20
"""Lines that a refusal names."""

_NAME = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")


def read_env_file(content: bytes) -> dict[str, str]:
    """Return the values of a file by name.

    Blank lines and those that begin with ``#`` are left out, and so is white space before a name.
    A value is the rest of its line, as it is. Raises SpecError with the numbers of the lines that
    are wrong, and never with what they hold: it may be secret.
    """
    values: dict[str, str] = {}
    problems: list[Reason] = []
    for number, line in _lines(content):
        try:
            name, value = _entry(line, values)
        except ValueError as problem:
            fix = "write NAME=VALUE lines in UTF-8"
            problems.append(Reason(field=f"line {number}", problem=str(problem), fix=fix))
        else:
            values[name] = value
        if len(values) > ENTRIES_LIMIT:
            problems.append(Reason(problem=f"has more than {ENTRIES_LIMIT} names"))
        if len(values) > ENTRIES_LIMIT or len(problems) >= REASONS_LIMIT:
            break
    if problems:
        raise SpecError(problems)
    return values


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the content of each line that has one."""
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        stripped = line.removesuffix(b"\r").lstrip()
        if stripped and not stripped.startswith(b"#"):
            yield number, stripped


def _entry(line: bytes, known: dict[str, str]) -> tuple[str, str]:
    """Return name and value. ValueError with the problem."""
    try:
        name, equals, value = line.decode().partition("=")
    except UnicodeDecodeError:
        raise ValueError("is not UTF-8") from None
    if not equals:
        raise ValueError("has no =")
    if not (_NAME.fullmatch(name) and is_key(name)):
        raise ValueError("has a name that can't be one of an environment variable")
    if name in known:
        raise ValueError("has the name of an earlier line")
    return name, value
