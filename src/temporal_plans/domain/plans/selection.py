"""The candidates among a parent's children: its strategy, behind its canary gates, unless it is
interrupted (behaviour 2.1, 2.6).

The canary of behaviour 2.6 keeps its gates on the children: the first N that were not complete when
the plan was made are *gates*, each opened by one continue. While one is closed, only opened gates
may run (of ``max-parallel-canary`` no more at once than its limit); once all are open the inner
strategy decides over all children.

With ``gates: pods`` a gate is before the first incomplete step of a pod, and the other steps of the
pod follow it by the inner strategy.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import BUILT_IN, CANARIES, record_of
from temporal_plans.domain.plans.strategies.record import Element, Select
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.trace import trace_of

Strategies = Mapping[str, Select]
"""Strategies by name: built-in, and registered with the plugin."""


class UnknownStrategy(LookupError):
    """This worker does not know a strategy that the plan was accepted with.

    In a workflow it must fail the workflow task, which is retried until a worker that knows the
    strategy is back: to go on without it would diverge from the history.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(f"this worker knows no strategy {name!r}; it knows: {', '.join(known)}")


class StrategyFailed(Exception):
    """A strategy raised, or returned something else than children that it was given."""

    def __init__(self, name: str, error: Exception) -> None:
        super().__init__(f"the strategy {name} failed: {type(error).__name__}: {error}")
        self.trace = trace_of(error)


def label(spec: StrategySpec) -> str:
    """Return the strategy's name as the API shows it: ``canary`` reads ``serial-canary``."""
    record = record_of(spec.name)
    return record.gated[0] if record is not None and spec.name in CANARIES else spec.name


def is_canary(spec: StrategySpec) -> bool:
    return spec.name in CANARIES


_NOT_BEGUN = (Status.PENDING, Status.WAITING)
_AT_REST = (*_NOT_BEGUN, Status.COMPLETE)


def gates(
    spec: StrategySpec, statuses: Sequence[Status], groups: Sequence[str] = ()
) -> tuple[int, ...]:
    """Return which children become gates when a canary is made (behaviour 2.6, construction).
    ``groups`` are those of the children, if there are any: the first child of a group that has not
    begun becomes a gate, unless another of the group is at work or in error."""
    if not is_canary(spec):
        return ()
    moving = {group for group, s in zip(groups, statuses, strict=False) if s not in _AT_REST}
    first: dict[str | int, int] = {}
    for index, status in enumerate(statuses):
        group = groups[index] if groups else ""
        if status in _NOT_BEGUN and not (group and group in moving):
            first.setdefault(group or index, index)
    return tuple(list(first.values())[: spec.proceeds])


def candidates(
    elements: Sequence[Element],
    spec: StrategySpec,
    canary: Sequence[int],
    *,
    interrupted: bool,
    seed: int = 0,
    strategies: Strategies = BUILT_IN,
) -> list[Element]:
    """Return the children that may be worked on now, in order; none while interrupted.

    Raises UnknownStrategy, StrategyFailed.
    """
    if interrupted:
        return []
    name = CANARIES.get(spec.name, spec.name)
    if any(elements[i].gate for i in canary):
        record = record_of(name)
        opened = _opened(elements, canary)
        if record is None or not record.bounds_gates:
            return [e for group in opened for e in _next(elements, group, name, spec, seed)]
        allowed = {e.index for group in opened for e in group}
        elements = [e if e.index in allowed else replace(e, eligible=False) for e in elements]
    if name not in strategies:
        raise UnknownStrategy(name, sorted(strategies))
    select = strategies[name]
    try:
        if select is BUILT_IN.get(name):  # which returns eligible elements, each once
            return list(select(elements, spec, seed))
        chosen = dict.fromkeys(_index(e) for e in select(elements, spec, seed))
        return [elements[i] for i in chosen if 0 <= i < len(elements) and elements[i].eligible]
    except Exception as error:  # the developer's own code
        raise StrategyFailed(name, error) from error


def _opened(elements: Sequence[Element], canary: Sequence[int]) -> list[list[Element]]:
    """Return the children behind each open gate, in the order of the gates."""
    gates = [elements[i] for i in canary if not elements[i].gate]
    return [
        [e for e in elements if e.group == gate.group] if gate.group else [gate] for gate in gates
    ]


def _next(
    elements: Sequence[Element], group: Sequence[Element], name: str, spec: StrategySpec, seed: int
) -> list[Element]:
    """Return the children behind one open gate that may be worked on: the child itself, or those
    that the inner strategy selects of a pod."""
    if len(group) == 1:
        return [e for e in group if e.eligible]
    members = {e.index for e in group}
    of_pod = [e for e in elements if e.index in members or e.complete]
    return list(BUILT_IN[name](of_pod, spec, seed))


def _index(chosen: object) -> int:
    if isinstance(chosen, Element):
        return chosen.index
    raise TypeError(f"it returned {chosen!r} instead of an element")


def is_interrupted(elements: Sequence[Element], canary: Sequence[int], interrupted: bool) -> bool:
    """Whether an operator interrupted it, or a canary gate stops it with no opened gate at work."""
    if interrupted:
        return True
    closed = any(elements[i].gate for i in canary)
    at_work = any(not e.complete for group in _opened(elements, canary) for e in group)
    return closed and not at_work


def next_gate(elements: Sequence[Element], canary: Sequence[int]) -> int | None:
    """Return the gate that the next continue opens; None when all are open."""
    return next((i for i in canary if elements[i].gate), None)
