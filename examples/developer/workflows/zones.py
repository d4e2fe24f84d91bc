"""The strategy ``zone-by-zone``."""

from collections.abc import Sequence

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.strategies import Element


def zone_by_zone(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """All steps of one zone at once, each after what it depends on; then the next zone.

    A step's zone is what its name begins with: ``a-web1-check`` is in zone ``a``. The option
    ``separator`` says what ends it. While a step of a zone is not complete, no later zone is
    touched.
    """
    separator = spec.options.get("separator", "-")
    zones: dict[str, list[Element]] = {}
    for element in elements:
        zones.setdefault(element.name.partition(separator)[0], []).append(element)
    for zone in zones.values():
        complete = {element.name for element in zone if element.complete}
        if len(complete) < len(zone):
            return [e for e in zone if e.eligible and complete.issuperset(e.depends_on)]
    return []
