"""A strategy: its view of a child, the function that chooses, and its record."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import Reason


@dataclass(frozen=True, slots=True)
class Element:
    """A child of a plan or phase as its parent's strategy sees it.

    ``eligible``: incomplete, without errors, not interrupted (behaviour 1.3). ``begun``: it has
    been worked on and is not complete. ``gate``: a canary child that still waits for its continue.
    ``group``: where gates are before pods, the pod of the child; empty for a child of its own.
    """

    index: int
    name: str
    status: Status
    eligible: bool
    begun: bool = False
    gate: bool = False
    depends_on: tuple[str, ...] = ()
    group: str = ""

    @property
    def complete(self) -> bool:
        return self.status is Status.COMPLETE


class Select(Protocol):
    """Choose, from all children in order, those that may be worked on now.

    Called again after every change. It must be deterministic and quick, keep no state, and return
    children that it was given; the engine drops those that are not eligible and repetitions.
    ``seed`` is fixed for the life of a plan run.
    """

    def __call__(
        self, elements: Sequence[Element], spec: StrategySpec, seed: int
    ) -> Sequence[Element]: ...


class Dependencies(StrEnum):
    """Which ``depends-on`` of its children a strategy keeps: all, those on earlier children (by
    its order), or none."""

    KEPT = "kept"
    EARLIER = "earlier"
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Timed:
    """The part of a child that an estimate needs. ``seconds``: the time it will still take."""

    name: str
    seconds: float
    depends_on: tuple[str, ...] = ()


Estimate = Callable[[Sequence[Timed], StrategySpec], float]
"""Return the seconds that children with these times take under a strategy."""

Check = Callable[[StrategySpec, str], Iterator[Reason]]
"""Yield the faults of a strategy's settings; the text is the strategy's path."""


def parallel_seconds(children: Sequence[Timed], spec: StrategySpec) -> float:
    """Return the estimate for children that run at the same time: the longest."""
    return max((child.seconds for child in children), default=0.0)


def serial_seconds(children: Sequence[Timed], spec: StrategySpec) -> float:
    """Return the estimate for children that run one after the other: the sum."""
    return sum(child.seconds for child in children)


def no_check(spec: StrategySpec, path: str) -> Iterator[Reason]:
    """Check nothing: for strategies whose settings need no check."""
    yield from ()


@dataclass(frozen=True)
class StrategyRecord:
    """A strategy with all facts about it.

    ``settings`` are the fields of ``StrategySpec`` that it reads; any other is refused, except
    ``options`` with ``own_options``. ``gated`` are its canary names, the displayed name first;
    ``bounds_gates``: it also chooses among the gates that are open. ``in_services`` are the names
    that a service file may write. ``with_dependencies`` is the strategy that does the same and
    keeps dependencies; ``boundable``: a rollout may replace it by ``max-parallel``.
    """

    name: str
    select: Select
    check: Check = no_check
    estimate: Estimate = parallel_seconds
    settings: frozenset[str] = frozenset()
    own_options: bool = False
    dependencies: Dependencies = Dependencies.IGNORED
    gated: tuple[str, ...] = ()
    bounds_gates: bool = False
    in_services: frozenset[str] = frozenset()
    with_dependencies: str = ""
    boundable: bool = False
