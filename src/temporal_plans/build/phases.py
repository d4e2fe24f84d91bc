"""Phases: steps that belong together, and the strategy that orders them."""

from collections.abc import Sequence
from dataclasses import dataclass

from temporal_plans.build.steps import Step
from temporal_plans.build.strategies import Strategy


@dataclass(frozen=True, eq=False)
class Phase:
    """A phase as it was written."""

    name: str
    steps: tuple[Step, ...]
    strategy: Strategy | str | None = None
    depends_on: Sequence["str | Phase"] = ()

    @property
    def step_names(self) -> list[str]:
        """The names of the steps in order, those given and those made."""
        taken = {step.name for step in self.steps if step.name is not None}
        names: list[str] = []
        for step in self.steps:
            name = step.name if step.name is not None else _free(step.called, taken)
            taken.add(name)
            names.append(name)
        return names


def phase(
    name: str,
    *steps: Step,
    strategy: Strategy | str | None = None,
    depends_on: Sequence[str | Phase] = (),
) -> Phase:
    """Some steps under a name. ``strategy`` is serial when absent; ``depends_on`` are other phases
    of the plan, by name or as they are."""
    return Phase(name, steps, strategy, depends_on)


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
