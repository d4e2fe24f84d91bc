"""What was said during a soak test, and what was answered."""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from acceptance.soak.services import Wanted


class Answer(Enum):
    """UNKNOWN: the server, the worker or both were away, so it may or may not have been done."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass
class Given:
    """One command. ``reason`` is unique, so it is found again in the logs; ``service`` is the life
    of the service that it was given in, counted by its installations."""

    reason: str
    service: str
    life: int
    what: str
    answer: Answer = Answer.UNKNOWN
    wanted: Wanted | None = None
    """the configuration, of a command that sets one"""


@dataclass
class Ledger:
    """All commands, and the timeline of all that happened."""

    given: list[Given] = field(default_factory=list[Given])
    lives: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    began: float = field(default_factory=time.monotonic)
    lines: list[str] = field(default_factory=list[str])

    def tell(self, text: str) -> None:
        line = f"{time.monotonic() - self.began:6.1f} s  {text}"
        self.lines.append(line)
        print(line, flush=True)

    def about_to(self, service: str, what: str, wanted: Wanted | None = None) -> Given:
        """A command that is given now."""
        reason = f"soak-{len(self.given):04d}"
        one = Given(reason, service, self.lives[service], what, wanted=wanted)
        self.given.append(one)
        return one

    def answered(self, one: Given, answer: Answer, text: str = "") -> None:
        one.answer = answer
        self.tell(f"{one.reason} {one.service}: {one.what}: {answer.value} {text}".rstrip())

    def changes(self, service: str) -> list[str]:
        """What was said to a service about its configuration, as it is in the timeline."""
        verbs = tuple(f" {service}: {verb}" for verb in ("deploy v", "rollback", "uninstall"))
        return [line.strip() for line in self.lines if any(verb in line for verb in verbs)]

    def accepted(self) -> list[Given]:
        return [one for one in self.given if one.answer is Answer.ACCEPTED]

    @property
    def by_reason(self) -> Mapping[str, Given]:
        return {one.reason: one for one in self.given}
