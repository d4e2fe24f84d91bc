"""A command that would help an operator."""

import shlex

from temporal_plans.domain.values.model import CompactValue


class Hint(CompactValue):
    """A command line, as it is to be typed, and its purpose: "to retry", "to see its output".
    Without a command it is an advice in words."""

    purpose: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.purpose}: {self.command}" if self.command else self.purpose


def plan_hint(purpose: str, *words: str, service: str = "") -> Hint:
    """Return a hint at a ``temporal plan`` command. Empty words are left out."""
    of_service = ("-s", service) if service else ()
    given = [word for word in words if word]
    return Hint(purpose=purpose, command=shlex.join(("temporal", "plan", *given, *of_service)))


def temporal_hint(purpose: str, *words: str) -> Hint:
    """Return a hint at a command of the ``temporal`` CLI itself."""
    return Hint(purpose=purpose, command=shlex.join(("temporal", *words)))
