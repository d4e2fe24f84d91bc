"""Everything at once (reference 2.3)."""

from collections.abc import Sequence

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.strategies.element import Element


def parallel(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Every eligible child."""
    return [element for element in elements if element.eligible]
