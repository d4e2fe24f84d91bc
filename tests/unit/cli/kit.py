"""What tests of the command line share; their fixtures are in ``conftest``."""

from dataclasses import dataclass
from typing import Protocol

from temporal_plans.domain.plans.commands import Outcome, Result

DONE = Outcome(result=Result.DONE, message="Received cmd")


@dataclass(frozen=True)
class Ran:
    """What one command line came to."""

    code: int
    out: str
    err: str


class Run(Protocol):
    def __call__(self, *arguments: str) -> Ran: ...
