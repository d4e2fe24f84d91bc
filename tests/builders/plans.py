"""Plans as they are defined: steps, phases, plans."""

from datetime import timedelta

from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec

NO_WORK = SleepWork(duration=timedelta(0))
"""Work that is done at once."""


def step_spec(name: str = "s", work: Work = NO_WORK, **fields: object) -> StepSpec:
    return StepSpec.model_validate({"name": name, "work": work, **fields})


def phase_spec(
    name: str, *steps: StepSpec | str, strategy: StrategySpec | str = "serial", **fields: object
) -> PhaseSpec:
    """A phase of these steps; those given by name alone have no work."""
    made = tuple(step_spec(step) if isinstance(step, str) else step for step in steps)
    given = {"name": name, "strategy": strategy, "steps": made}
    return PhaseSpec.model_validate({**given, **fields})


def phase_of(name: str, count: int, strategy: StrategySpec | str = "serial") -> PhaseSpec:
    """A phase of so many steps, ``web-0``, ``web-1``, … in the phase web."""
    return phase_spec(name, *(f"{name}-{i}" for i in range(count)), strategy=strategy)


def phase_doing(
    name: str, *works: Work, strategy: StrategySpec | str = "serial", **fields: object
) -> PhaseSpec:
    """A phase of the steps s0, s1, …, each with its work."""
    made = (step_spec(f"s{i}", work) for i, work in enumerate(works))
    return phase_spec(name, *made, strategy=strategy, **fields)


def plan_spec(
    *phases: PhaseSpec,
    name: str = "deploy",
    strategy: StrategySpec | str = "serial",
    **fields: object,
) -> PlanSpec:
    given = {"name": name, "strategy": strategy, "phases": phases}
    return PlanSpec.model_validate({**given, **fields})
