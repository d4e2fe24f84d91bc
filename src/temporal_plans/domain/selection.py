"""From a parent's children to its candidates: its strategy, behind its canary gates, unless it is
interrupted (reference 2.1, 2.6).

The canary of reference 2.6 keeps its gates on the children: the first N that were not complete when
the plan was made are *gates*, each opened by one continue. While one is closed, only opened gates
may run (of ``max-parallel-canary`` no more at once than its limit); once all are open the inner
strategy decides over all children.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.strategies import BUILT_IN, CANARIES, Element, Select

Strategies = Mapping[str, Select]
"""Strategies by name: the built-in ones and those that the plugin was given."""


class UnknownStrategy(LookupError):
    """This worker does not know a strategy that the plan was accepted with.

    In a workflow it must fail the task, which is tried again until a worker that knows it is back:
    going on without would make another history than the one that there is.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"this worker knows no strategy {name!r}; it knows: {', '.join(known)}")


class StrategyFailed(Exception):
    """A strategy raised, or answered with something else than children that it was given."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"the strategy {name} failed: {type(error).__name__}: {error}")


def label(spec: StrategySpec) -> str:
    """The strategy's name as the API shows it: ``canary`` reads ``serial-canary``."""
    return "serial-canary" if spec.name == "canary" else spec.name


def is_canary(spec: StrategySpec) -> bool:
    return spec.name in CANARIES


def gates(spec: StrategySpec, statuses: Sequence[Status]) -> tuple[int, ...]:
    """Which children become gates when a canary is made (reference 2.6, construction)."""
    if not is_canary(spec):
        return ()
    pending = [i for i, s in enumerate(statuses) if s in (Status.PENDING, Status.WAITING)]
    return tuple(pending[: spec.proceeds])


def candidates(
    elements: Sequence[Element],
    spec: StrategySpec,
    canary: Sequence[int],
    *,
    interrupted: bool,
    seed: int = 0,
    strategies: Strategies = BUILT_IN,
) -> list[Element]:
    """The children that may be worked on now, in order; none while interrupted.

    Raises UnknownStrategy, StrategyFailed.
    """
    if interrupted:
        return []
    name = CANARIES.get(spec.name, spec.name)
    if any(elements[i].gate for i in canary):
        if name != "max-parallel":
            return [elements[i] for i in canary if elements[i].eligible]
        # the bound holds for opened gates, too
        elements = [e if e.index in canary else replace(e, eligible=False) for e in elements]
    if name not in strategies:
        raise UnknownStrategy(name, sorted(strategies))
    try:
        chosen = dict.fromkeys(_index(e) for e in strategies[name](elements, spec, seed))
        return [elements[i] for i in chosen if 0 <= i < len(elements) and elements[i].eligible]
    except Exception as error:  # the developer's own code
        raise StrategyFailed(name, error) from error


def _index(chosen: object) -> int:
    if isinstance(chosen, Element):
        return chosen.index
    raise TypeError(f"it answered {chosen!r} in place of an element")


def is_interrupted(elements: Sequence[Element], canary: Sequence[int], interrupted: bool) -> bool:
    """Interrupted by somebody, or stopped at a canary gate with no opened gate at work."""
    if interrupted:
        return True
    closed = any(elements[i].gate for i in canary)
    at_work = any(not elements[i].gate and not elements[i].complete for i in canary)
    return closed and not at_work


def next_gate(elements: Sequence[Element], canary: Sequence[int]) -> int | None:
    """The gate that the next continue opens, or None when all are open."""
    return next((i for i in canary if elements[i].gate), None)
