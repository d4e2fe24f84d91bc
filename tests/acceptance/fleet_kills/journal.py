"""What the commands of plans wrote down, independent of any workflow."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

COMMANDS = ("switch",)
"""Those of a plan that succeeds."""

FAILING = ("switch", "answers")
"""Those of the one that fails: the last does not come to its end."""


@dataclass(frozen=True)
class Work:
    """A change of an entity, ``environment/name``: in these stories there is one of it."""

    entity: str
    intent: str
    before: str
    version: str


@dataclass(frozen=True)
class Line:
    """``begun`` or ``done``: one run of a command. ``sandbox`` is the directory in which it
    ran."""

    event: str
    step: str
    work: Work
    sandbox: Path


class Journal:
    """The file that the commands append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __len__(self) -> int:
        return len(self._texts())

    def _texts(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def lines(self) -> list[Line]:
        return [_line(text) for text in self._texts()]

    def environment(self) -> str:
        """Where the last line was written; empty when there is none."""
        lines = self.lines()
        return lines[-1].work.entity.partition("/")[0] if lines else ""

    def installed(self) -> dict[str, str]:
        """The version that each entity was switched to last."""
        return {
            one.work.entity: one.work.version
            for one in self.lines()
            if (one.event, one.step) == ("done", "switch")
        }

    def faults(self, works: Mapping[Work, str], homes: Mapping[str, Path]) -> Iterator[str]:
        """What differs from the works that there must be, with the number and the status of the
        plan of each. ``homes`` are the directories of environments."""
        found: dict[Work, Counter[tuple[str, str]]] = defaultdict(Counter)
        for line in self.lines():
            found[line.work][line.event, line.step] += 1
            if not line.sandbox.is_relative_to(homes[line.work.entity.partition("/")[0]]):
                yield f"{line.work} was carried out in {line.sandbox}"
        for work in found.keys() - works.keys():
            yield f"{work} was carried out, and is not wanted: {dict(found[work])}"
        for work, status in works.items():
            wanted = Counter(_events(failed=status.endswith("FAILED")))
            if found[work] != wanted:
                yield f"{work} ({status}) wrote {dict(found[work])}"


def _events(*, failed: bool) -> list[tuple[str, str]]:
    steps = FAILING if failed else COMMANDS
    events = [(event, step) for step in steps for event in ("begun", "done")]
    return events[:-1] if failed else events


def _line(text: str) -> Line:
    event, intent, entity, step, before, version, sandbox = text.split(" ", 6)
    return Line(event, step, Work(entity, intent, before, version), Path(sandbox))
