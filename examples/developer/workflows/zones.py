"""The strategy ``zone-by-zone``."""

from collections.abc import Sequence

from temporal_plans.sdk import Element, StrategySpec


def zone_by_zone(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Select the steps of one zone, each after its dependencies; then those of the next zone.

    The zone of a step is the part of its name before the option ``separator``: ``a-web1-check`` is
    in zone ``a``. While a step of a zone is not complete, no step of a later zone is selected.
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
