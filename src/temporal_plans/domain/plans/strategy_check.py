"""Checks of a strategy: its name, its settings, and the dependencies of its children."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Protocol, cast

from temporal_plans.domain.plans.strategies import CANARIES, STRATEGIES, record_of
from temporal_plans.domain.plans.strategies.record import Dependencies, StrategyRecord
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason


class Child(Protocol):
    """A phase or a step, as far as its parent's strategy is concerned."""

    @property
    def name(self) -> str: ...
    @property
    def depends_on(self) -> tuple[str, ...]: ...


def strategy_problems(
    spec: StrategySpec, path: str, known: Collection[str] | None
) -> Iterator[Reason]:
    """Yield the faults of the strategy at ``path``; ``known`` None: the worker checks the name."""
    if known is not None and spec.name not in known:
        yield Reason(
            field=path,
            problem="unknown strategy",
            value=spec.name,
            fix=suggestion(spec.name, known),
        )
        return
    record = record_of(spec.name)
    if record is None:
        return  # a developer's own strategy checks its settings itself
    yield from record.check(spec, path)
    yield from _ignored_settings(spec, record, path)


def _ignored_settings(spec: StrategySpec, record: StrategyRecord, path: str) -> Iterator[Reason]:
    """Yield the given settings that the strategy does not read."""
    reads = {"name", *record.settings}
    if spec.name in CANARIES:
        reads |= {"proceeds", "gates"}
    if record.own_options:
        reads.add("options")
    for setting, field in StrategySpec.model_fields.items():
        value = getattr(spec, setting)
        if setting not in reads and value != field.default:
            yield Reason(
                field=f"{path}.{setting}",
                problem=f"the strategy {spec.name} does not take this setting",
                value=_plain(value),
                fix=f"remove it, or use {_TAKEN_BY[setting]}",
            )


def _plain(value: object) -> object:
    """Return a value with lists for tuples, as in JSON."""
    return list(cast(tuple[object, ...], value)) if isinstance(value, tuple) else value


_TAKEN_BY = {
    "proceeds": "a canary strategy",
    "gates": "a canary strategy",
    "options": "a strategy of your own",
    **{setting: record.name for record in STRATEGIES for setting in record.settings},
}
"""Which strategies take a setting."""


def dependency_problems(
    spec: StrategySpec, children: Sequence[Child], path: str
) -> Iterator[Reason]:
    """Yield the faults of the children's ``depends-on``: unknown, itself, cyclic, or ignored."""
    names = {child.name for child in children}
    sound: dict[str, tuple[str, ...]] = {}
    for child in children:
        where = f"{path}.{child.name}.depends-on"
        for wanted in child.depends_on:
            if wanted == child.name:
                yield Reason(field=where, problem="depends on itself", value=wanted)
            elif wanted not in names:
                yield Reason(
                    field=where,
                    problem="names no element of the same parent",
                    value=wanted,
                    fix=suggestion(wanted, names - {child.name}),
                )
        sound[child.name] = tuple(n for n in child.depends_on if n in names and n != child.name)
    cycle = find_cycle(sound)
    if cycle:
        yield Reason(
            field=f"{path}.{cycle[0]}.depends-on",
            problem=f"is circular: {' -> '.join(cycle)}",
            fix="remove one of these dependencies",
        )
    else:
        yield from _ignored_dependencies(spec, sound, path)


def _ignored_dependencies(
    spec: StrategySpec, dependencies: dict[str, tuple[str, ...]], path: str
) -> Iterator[Reason]:
    """Yield the dependencies that the strategy would not keep.

    Serial strategies keep those on earlier children, by their order. A developer's own strategy
    sees the dependencies and decides itself.
    """
    record = record_of(spec.name)
    if record is None or record.dependencies is Dependencies.KEPT:
        return
    in_order = record.dependencies is Dependencies.EARLIER
    earlier: set[str] = set()
    for name, wanted in dependencies.items():
        if wanted and not (in_order and earlier.issuperset(wanted)):
            yield Reason(
                field=f"{path}.{name}.depends-on",
                problem=f"the strategy {spec.name} does not keep this dependency",
                value=list(wanted),
                fix="use the strategy dependency",
            )
        earlier.add(name)


def find_cycle(dependencies: Mapping[str, Sequence[str]]) -> list[str]:
    """Return one cycle of names, its first name repeated at its end; empty without a cycle."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]  # in the direction "depends on"
    return []
