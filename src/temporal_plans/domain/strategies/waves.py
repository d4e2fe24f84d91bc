"""In waves: each begins when the one before is complete."""

from collections.abc import Sequence
from math import ceil

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.strategies.element import Element


def waves(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """The eligible children of the first wave that is not complete.

    ``waves`` are sizes: a count, or a share of all children rounded up ("25%"). The last size
    repeats until all children are in a wave.
    """
    start = 0
    for size in wave_sizes(spec.waves, len(elements)):
        wave = elements[start : start + size]
        if not all(element.complete for element in wave):
            return [element for element in wave if element.eligible]
        start += size
    return ()


def wave_sizes(sizes: Sequence[int | str], total: int) -> list[int]:
    """The sizes of the waves that ``total`` children are dealt into; each at least one."""
    result: list[int] = []
    left, position = total, 0
    while left > 0:
        size = sizes[min(position, len(sizes) - 1)] if sizes else 1
        count = min(max(_count(size, total), 1), left)
        result.append(count)
        left -= count
        position += 1
    return result


def _count(size: int | str, total: int) -> int:
    """Never raises: a board is made, and its status read, before its plan is checked."""
    if isinstance(size, int):
        return size
    try:
        return ceil(float(size.rstrip("%")) * total / 100)
    except (ValueError, OverflowError):
        return 1
