"""One at a time, in order (behaviour 2.4)."""

from collections.abc import Sequence

from temporal_plans.domain.plans.strategies.record import (
    Dependencies,
    Element,
    StrategyRecord,
    serial_seconds,
)
from temporal_plans.domain.plans.strategies.spec import StrategySpec


def serial(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Return the first incomplete child. When it may not run, no later child may either."""
    for element in elements:
        if not element.complete:
            return (element,) if element.eligible else ()
    return ()


SERIAL = StrategyRecord(
    name="serial",
    select=serial,
    estimate=serial_seconds,
    dependencies=Dependencies.EARLIER,
    gated=("serial-canary", "canary"),
    in_services=frozenset({"serial", "serial-canary", "canary"}),
    boundable=True,
)
