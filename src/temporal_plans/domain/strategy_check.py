"""Whether a strategy is known, has the settings that it needs and none that it ignores."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

from temporal_plans.domain.errors import Problem
from temporal_plans.domain.names import suggestion
from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.strategies import CANARIES, NAMES

_SHARE = re.compile(r"(\d+(?:\.\d+)?)%")


class Child(Protocol):
    """A phase or a step, as far as its parent's strategy is concerned."""

    @property
    def name(self) -> str: ...
    @property
    def depends_on(self) -> tuple[str, ...]: ...


def strategy_problems(
    spec: StrategySpec, path: str, known: Collection[str] | None
) -> Iterator[Problem]:
    """Faults of the strategy at ``path``; ``known`` None leaves unknown names to the worker."""
    if known is not None and spec.name not in known:
        yield Problem(
            path=path, message="unknown strategy", value=spec.name, fix=suggestion(spec.name, known)
        )
        return
    if spec.name not in NAMES:
        return  # the developer's own strategy takes the settings that it likes
    yield from _limit_problems(spec, path)
    yield from _wave_problems(spec, path)
    if spec.proceeds != 2 and spec.name not in CANARIES:
        yield _ignored(f"{path}.proceeds", spec.name, spec.proceeds, "a canary strategy")
    if spec.options:
        yield _ignored(f"{path}.options", spec.name, spec.options, "a strategy of your own")


def _limit_problems(spec: StrategySpec, path: str) -> Iterator[Problem]:
    bounded = _order(spec) == "max-parallel"
    if bounded and spec.limit is None:
        yield Problem(
            path=f"{path}.limit",
            message=f"{spec.name} needs a limit",
            fix=f"write how many may run at once: {{name: {spec.name}, limit: 3}}",
        )
    if not bounded and spec.limit is not None:
        yield _ignored(f"{path}.limit", spec.name, spec.limit, "max-parallel")


def _order(spec: StrategySpec) -> str:
    """The strategy itself, or the one behind its canary gates."""
    return CANARIES.get(spec.name, spec.name)


def _wave_problems(spec: StrategySpec, path: str) -> Iterator[Problem]:
    if spec.name != "waves":
        if spec.waves:
            yield _ignored(f"{path}.waves", spec.name, list(spec.waves), "waves")
        return
    if not spec.waves:
        yield Problem(
            path=f"{path}.waves",
            message="waves needs the sizes of its waves",
            fix='write counts or shares: {name: waves, waves: [1, "25%"]}',
        )
    for index, wave in enumerate(spec.waves):
        if not is_wave(wave):
            yield Problem(
                path=f"{path}.waves.{index}",
                message="a wave is a count of 1 or more, or a share above 0% up to 100%",
                value=wave,
                fix='for example 3 or "25%"',
            )


def is_wave(size: int | str) -> bool:
    """A count of 1 or more, or a share such as ``25%``."""
    if isinstance(size, int):
        return size >= 1
    share = _SHARE.fullmatch(size)
    return share is not None and 0 < float(share[1]) <= 100


def _ignored(path: str, strategy: str, value: object, owner: str) -> Problem:
    return Problem(
        path=path,
        message=f"the strategy {strategy} does not take this setting",
        value=value,
        fix=f"remove it, or use {owner}",
    )


def dependency_problems(
    spec: StrategySpec, children: Sequence[Child], path: str
) -> Iterator[Problem]:
    """Faults of the children's ``depends-on``: unknown, itself, cycles, or not looked at."""
    names = {child.name for child in children}
    sound: dict[str, tuple[str, ...]] = {}
    for child in children:
        where = f"{path}.{child.name}.depends-on"
        for wanted in child.depends_on:
            if wanted == child.name:
                yield Problem(path=where, message="depends on itself", value=wanted)
            elif wanted not in names:
                yield Problem(
                    path=where,
                    message="names nothing beside it",
                    value=wanted,
                    fix=suggestion(wanted, names - {child.name}),
                )
        sound[child.name] = tuple(n for n in child.depends_on if n in names and n != child.name)
    cycle = find_cycle(sound)
    if cycle:
        yield Problem(
            path=f"{path}.{cycle[0]}.depends-on",
            message=f"goes round in a circle: {' -> '.join(cycle)}",
            fix="remove one of these dependencies",
        )
    else:
        yield from _unheeded(spec, sound, path)


def _unheeded(
    spec: StrategySpec, dependencies: dict[str, tuple[str, ...]], path: str
) -> Iterator[Problem]:
    """Dependencies that the strategy would not keep.

    Serial ones keep those on earlier children, by their order. Strategies of the developer's own
    see the dependencies and may do as they like.
    """
    if spec.name not in NAMES or _order(spec) in ("dependency", "max-parallel"):
        return
    serial = _order(spec) == "serial"
    earlier: set[str] = set()
    for name, wanted in dependencies.items():
        if wanted and not (serial and earlier.issuperset(wanted)):
            yield Problem(
                path=f"{path}.{name}.depends-on",
                message=f"the strategy {spec.name} does not keep this dependency",
                value=list(wanted),
                fix="use the strategy dependency",
            )
        earlier.add(name)


def find_cycle(dependencies: Mapping[str, Sequence[str]]) -> list[str]:
    """One circle of names, its first name repeated at its end; empty when there is none."""
    try:
        TopologicalSorter(dependencies).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]  # in the direction "depends on"
    return []
