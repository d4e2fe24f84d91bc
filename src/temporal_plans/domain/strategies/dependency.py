"""What others must precede (reference 2.2)."""

from collections.abc import Sequence

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.strategies.element import Element


def dependency(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Every eligible child whose named prerequisites are complete, in declaration order.

    Only the recorded edges count; they are not followed further (reference 2.2).
    """
    complete = {e.name for e in elements if e.status is Status.COMPLETE}
    complete -= {e.name for e in elements if e.status is not Status.COMPLETE}  # a name used twice
    return [
        e
        for e in elements
        if e.eligible and (not e.depends_on or complete.issuperset(e.depends_on))
    ]
