"""In waves: each begins when the one before is complete."""

import re
from collections.abc import Iterator, Sequence
from math import ceil

from temporal_plans.domain.plans.strategies.record import Element, StrategyRecord, Timed
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.refusal import Reason

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


def waves(elements: Sequence[Element], spec: StrategySpec, seed: int) -> Sequence[Element]:
    """Return the eligible children of the first wave that is not complete.

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
    """Return the sizes of the waves that ``total`` children are divided into; each at least 1."""
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
    """Return the size of a wave. Never raises: a board reads its status before the plan is
    checked."""
    if isinstance(size, int):
        return size
    try:
        return ceil(float(size.rstrip("%")) * total / 100)
    except (ValueError, OverflowError):
        return 1


def has_sizes(spec: StrategySpec, path: str) -> Iterator[Reason]:
    """Check that there are sizes, and that each can be the size of a wave."""
    if not spec.waves:
        yield Reason(
            field=f"{path}.waves",
            problem="the strategy waves needs the sizes of its waves",
            fix='write counts or shares: {name: waves, waves: [1, "25%"]}',
        )
    for index, wave in enumerate(spec.waves):
        if not is_wave(wave):
            yield Reason(
                field=f"{path}.waves.{index}",
                problem="must be a count of 1 or more, or a share above 0% up to 100%",
                value=wave,
                fix='write for example 3 or "25%"',
            )


def is_wave(size: int | str) -> bool:
    """Whether a size is a count of 1 or more, or a share such as ``25%``."""
    if isinstance(size, int):
        return size >= 1
    share = _SHARE.fullmatch(size)
    return share is not None and 0 < float(share[1]) <= 100


def waves_seconds(children: Sequence[Timed], spec: StrategySpec) -> float:
    """Return the estimate: the sum of the longest child of every wave."""
    total, start = 0.0, 0
    for size in wave_sizes(spec.waves, len(children)):
        total += max((child.seconds for child in children[start : start + size]), default=0.0)
        start += size
    return total


WAVES = StrategyRecord(
    name="waves",
    select=waves,
    check=has_sizes,
    estimate=waves_seconds,
    settings=frozenset({"waves"}),
    in_services=frozenset({"waves"}),
)
