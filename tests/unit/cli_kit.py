"""What tests of the command line share; their fixtures are in ``conftest``."""

from dataclasses import dataclass
from typing import Protocol

from temporal_plans.domain.commands import Outcome

DONE = Outcome(code=200, message="Received cmd")


@dataclass(frozen=True)
class Ran:
    """What one command line came to."""

    code: int
    out: str
    err: str


class Run(Protocol):
    def __call__(self, *arguments: str) -> Ran: ...
