"""In order, with a bound on how many are worked on at once."""

from collections.abc import Sequence

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.strategies.dependency import dependency
from temporal_plans.domain.strategies.element import Element


def max_parallel(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """At most ``limit`` (default 1) children: those that have begun, then the next ones in order
    whose prerequisites, if they name any, are complete.

    A child that has begun and may not go on (it failed, or is interrupted) keeps its place: a crash
    loop never lets more children become unavailable than the bound allows. Only one whose
    prerequisite was restarted makes room for it.
    """
    held = sum(element.begun and not element.eligible for element in elements)
    free = max((spec.limit or 1) - held, 0)
    eligible = list(dependency(elements, spec, seed))
    eligible.sort(key=lambda element: not element.begun)  # stable: else in order
    return sorted(eligible[:free], key=lambda element: element.index)
