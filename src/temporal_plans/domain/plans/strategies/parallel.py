"""Everything at once (behaviour 2.3)."""

from collections.abc import Sequence

from temporal_plans.domain.plans.strategies.record import Element, StrategyRecord
from temporal_plans.domain.plans.strategies.spec import StrategySpec


def parallel(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Return every eligible child."""
    return [element for element in elements if element.eligible]


PARALLEL = StrategyRecord(
    name="parallel",
    select=parallel,
    gated=("parallel-canary",),
    in_services=frozenset({"parallel", "parallel-canary"}),
    with_dependencies="dependency",
    boundable=True,
)
