"""One at a time, in order (reference 2.4)."""

from collections.abc import Sequence

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.strategies.element import Element


def serial(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """The first incomplete child. When it may not run, nothing behind it may either."""
    for element in elements:
        if not element.complete:
            return (element,) if element.eligible else ()
    return ()
