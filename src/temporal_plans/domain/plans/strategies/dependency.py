"""Each child after the children that it names (behaviour 2.2)."""

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.record import (
    Dependencies,
    Element,
    StrategyRecord,
    Timed,
    parallel_seconds,
)
from temporal_plans.domain.plans.strategies.spec import StrategySpec


def dependency(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Return every eligible child whose named prerequisites are complete, in declaration order.

    Only direct dependencies count; they are not followed further (behaviour 2.2).
    """
    complete = {e.name for e in elements if e.status is Status.COMPLETE}
    complete -= {e.name for e in elements if e.status is not Status.COMPLETE}  # a name used twice
    return [
        e
        for e in elements
        if e.eligible and (not e.depends_on or complete.issuperset(e.depends_on))
    ]


def critical_path(children: Sequence[Timed], spec: StrategySpec) -> float:
    """Return the estimate: the longest path through the dependencies. With a cycle, which a plan's
    check refuses, the longest child."""
    own = {child.name: child.seconds for child in children}
    before = {child.name: [one for one in child.depends_on if one in own] for child in children}
    ends: dict[str, float] = {}
    try:
        for name in TopologicalSorter(before).static_order():
            ends[name] = own[name] + max((ends[one] for one in before[name]), default=0.0)
    except CycleError:
        return parallel_seconds(children, spec)
    return max(ends.values(), default=0.0)


DEPENDENCY = StrategyRecord(
    name="dependency",
    select=dependency,
    estimate=critical_path,
    dependencies=Dependencies.KEPT,
    gated=("dependency-canary",),
    boundable=True,
)
