"""What a strategy sees of a child, and the shape of a strategy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.status import Status


@dataclass(frozen=True, slots=True)
class Element:
    """A child of a plan or phase as its parent's strategy sees it.

    ``eligible``: incomplete, without errors, not interrupted (reference 1.3). ``begun``: it has
    been worked on and is not complete. ``gate``: a canary child that still waits for its continue.
    """

    index: int
    name: str
    status: Status
    eligible: bool
    begun: bool = False
    gate: bool = False
    depends_on: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE


class Select(Protocol):
    """A strategy: from all children in order to those that may be worked on now.

    Called again after every change. It must be deterministic and quick, keep no state, and return
    children that it was given; the engine drops those that are not eligible and repeats. ``seed``
    is fixed for the life of a plan run.
    """

    def __call__(
        self, elements: Sequence[Element], spec: StrategySpec, seed: int
    ) -> Sequence[Element]: ...
