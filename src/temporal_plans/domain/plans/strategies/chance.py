"""One at a time, in an order that the plan's seed decides (behaviour 2.5)."""

from collections.abc import Sequence
from hashlib import blake2b

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.record import Element, StrategyRecord, serial_seconds
from temporal_plans.domain.plans.strategies.spec import StrategySpec


def chance(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Return one eligible child: the child that has begun, else the lowest in the seed's order.

    A child that has begun and is interrupted keeps its turn; a child in error has lost it.
    """
    begun = [e for e in elements if e.begun and e.status is not Status.ERROR]
    pool = [element for element in begun or elements if element.eligible]
    return (min(pool, key=lambda element: _rank(element, seed)),) if pool else ()


def _rank(element: Element, seed: int) -> bytes:
    return blake2b(f"{seed}/{element.index}".encode(), digest_size=8).digest()


RANDOM = StrategyRecord(name="random", select=chance, estimate=serial_seconds)
