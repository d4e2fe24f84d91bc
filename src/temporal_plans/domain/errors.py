"""What is wrong with a file or a request, said so that its writer can put it right.

Loading, plan checks and plan generation all speak in ``Problem``; ``SpecError`` carries every
problem of one file at once.
"""

import json
from collections.abc import Iterable
from typing import Any

from temporal_plans.domain.model import CompactValue

_SHOWN = 80
"""Longer values are cut in messages: the path says where to look."""


class Problem(CompactValue):
    """One fault. ``path`` names the field (``pods.hello.tasks.server.cpus``), ``value`` is what
    stands there (None when nothing does), ``fix`` says what would be right, ``line`` counts from 1.
    """

    path: str
    message: str
    value: Any = None
    fix: str = ""
    line: int | None = None

    def __str__(self) -> str:
        found = "" if self.value is None else f" (found: {shown(self.value)})"
        fix = f"; {self.fix}" if self.fix else ""
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}{found}{fix}"


class SpecError(Exception):
    """A service, a plan or its parameters can't be used; ``problems`` has every reason.

    As text: one problem a line, each with the source and, where known, the line in front.
    """

    def __init__(self, problems: Iterable[Problem], *, source: str = "") -> None:
        self.problems = tuple(problems)
        self.source = source
        super().__init__("\n".join(self._line(problem) for problem in self.problems))

    def _line(self, problem: Problem) -> str:
        line = "" if problem.line is None else f":{problem.line}"
        return f"{self.source}{line}: {problem}" if self.source else str(problem)


def shown(value: object) -> str:
    """A value on one line, cut when long."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
