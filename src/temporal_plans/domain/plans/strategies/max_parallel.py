"""In order, with a bound on how many are worked on at once."""

from collections.abc import Iterator, Sequence

from temporal_plans.domain.plans.strategies.dependency import dependency
from temporal_plans.domain.plans.strategies.record import (
    Dependencies,
    Element,
    StrategyRecord,
    Timed,
    parallel_seconds,
    serial_seconds,
)
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import Reason


def max_parallel(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Return at most ``limit`` (default 1) children: those that have begun, then the next ones in
    order whose prerequisites, if they name any, are complete.

    A child that has begun and may not go on (it failed, or is interrupted) still counts: a crash
    loop never lets more children become unavailable than the bound allows. Only a child whose
    prerequisite was restarted makes room for that.
    """
    held = sum(element.begun and not element.eligible for element in elements)
    free = max((spec.limit or 1) - held, 0)
    eligible = list(dependency(elements, spec, seed))
    eligible.sort(key=lambda element: not element.begun)  # stable: else in order
    return sorted(eligible[:free], key=lambda element: element.index)


def needs_limit(spec: StrategySpec, path: str) -> Iterator[Reason]:
    """Check that there is a limit."""
    if spec.limit is None:
        yield Reason(
            field=f"{path}.limit",
            problem=f"{spec.name} needs a limit",
            fix=f"write how many may run at once: {{name: {spec.name}, limit: 3}}",
        )


def bounded_seconds(children: Sequence[Timed], spec: StrategySpec) -> float:
    """Return the estimate: the sum divided by the limit, but no less than the longest child."""
    return max(parallel_seconds(children, spec), serial_seconds(children, spec) / (spec.limit or 1))


MAX_PARALLEL = StrategyRecord(
    name="max-parallel",
    select=max_parallel,
    check=needs_limit,
    estimate=bounded_seconds,
    settings=frozenset({"limit"}),
    dependencies=Dependencies.KEPT,
    gated=("max-parallel-canary",),
    bounds_gates=True,
    in_services=frozenset({"max-parallel"}),
    boundable=True,
)
