"""Phases: a name, steps, and the strategy that orders them."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporal_plans.build.steps import Step
from temporal_plans.build.strategies import Strategy


@dataclass(frozen=True, eq=False)
class Phase:
    """A phase, not yet checked."""

    name: str
    steps: tuple[Step, ...]
    strategy: Strategy | str | None = None
    depends_on: Sequence["str | Phase"] = ()

    @property
    def step_names(self) -> list[str]:
        """The names of the steps in order, given or generated."""
        taken = {step.name for step in self.steps if step.name is not None}
        names: list[str] = []
        for step in self.steps:
            name = step.name if step.name is not None else _free(step.default_name, taken)
            taken.add(name)
            names.append(name)
        return names


def phase(
    name: str,
    *steps: Step,
    strategy: Strategy | str | None = None,
    depends_on: Sequence[str | Phase] = (),
) -> Phase:
    """Make a phase. ``strategy`` is by default serial; ``depends_on`` are other phases of the plan,
    by name or as objects."""
    return Phase(name, steps, strategy, depends_on)


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
