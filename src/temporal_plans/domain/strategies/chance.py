"""One at a time, in an order that the plan's seed decides (reference 2.5)."""

from collections.abc import Sequence
from hashlib import blake2b

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.strategies.element import Element


def chance(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """One eligible child: the one that has begun, else the lowest in the seed's order.

    One that has begun and is interrupted still has its turn; one in error has lost it.
    """
    begun = [e for e in elements if e.begun and e.status is not Status.ERROR]
    pool = [element for element in begun or elements if element.eligible]
    return (min(pool, key=lambda element: _rank(element, seed)),) if pool else ()


def _rank(element: Element, seed: int) -> bytes:
    return blake2b(f"{seed}/{element.index}".encode(), digest_size=8).digest()
