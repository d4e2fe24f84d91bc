"""The estimate of how long a plan will still take, from how long the same steps took before.

It covers work only: waiting for an operator, an asset or an agent is not estimated.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import fmean

from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import record_of
from temporal_plans.domain.plans.strategies.record import Timed, parallel_seconds
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.model import CompactValue

Durations = Mapping[str, float]
"""Seconds that steps took, by ``phase/step``."""


class TimedStep(CompactValue):
    """The part of a step that an estimate needs. ``started``: when work on it began."""

    name: str
    status: Status = Status.PENDING
    started: datetime | None = None
    depends_on: tuple[str, ...] = ()


class TimedPhase(CompactValue):
    """The part of a phase that an estimate needs."""

    name: str
    strategy: StrategySpec = StrategySpec()
    depends_on: tuple[str, ...] = ()
    steps: tuple[TimedStep, ...] = ()


class TimedPlan(CompactValue):
    """The part of a plan that an estimate needs."""

    strategy: StrategySpec = StrategySpec()
    phases: tuple[TimedPhase, ...] = ()


def timed_plan(board: PlanBoard) -> TimedPlan:
    """Return the tree of a plan as it is now."""
    return TimedPlan(
        strategy=board.spec.strategy,
        phases=tuple(
            TimedPhase(
                name=phase.spec.name,
                strategy=phase.spec.strategy,
                depends_on=phase.spec.depends_on,
                steps=tuple(
                    TimedStep(
                        name=spec.name,
                        status=state.shown,
                        started=state.started,
                        depends_on=spec.depends_on,
                    )
                    for spec, state in zip(phase.spec.steps, phase.steps, strict=True)
                ),
            )
            for phase in board.phases
        ),
    )


def measured(board: PlanBoard) -> dict[str, float]:
    """Return how long the completed steps of a plan took, by ``phase/step``, without the forced
    ones."""
    return {
        f"{phase.spec.name}/{spec.name}": (state.finished - state.started).total_seconds()
        for phase in board.phases
        for spec, state in zip(phase.spec.steps, phase.steps, strict=True)
        if state.complete and not state.forced and state.started and state.finished
    }


def averaged(runs: Iterable[Durations]) -> dict[str, float]:
    """Return the mean of each step over several runs."""
    seen: dict[str, list[float]] = {}
    for run in runs:
        for name, seconds in run.items():
            seen.setdefault(name, []).append(seconds)
    return {name: fmean(values) for name, values in seen.items()}


def remaining(plan: TimedPlan, durations: Durations, now: datetime) -> timedelta | None:
    """Return the expected time until the plan is complete; None without any measured step.

    A step that was never measured counts as the average of its phase's measured steps, or else of
    the plan's. The time that a running step has taken so far is subtracted, down to zero. Children
    of strategies that users registered count as parallel.
    """
    incomplete = any(
        step.status is not Status.COMPLETE for phase in plan.phases for step in phase.steps
    )
    if not incomplete:
        return timedelta(0)
    if not durations:
        return None
    overall = fmean(durations.values())
    phases = [
        Timed(phase.name, _phase_seconds(phase, durations, overall, now), phase.depends_on)
        for phase in plan.phases
    ]
    return timedelta(seconds=_combined_seconds(plan.strategy, phases))


def _phase_seconds(phase: TimedPhase, durations: Durations, overall: float, now: datetime) -> float:
    prefix = f"{phase.name}/"
    known = [seconds for name, seconds in durations.items() if name.startswith(prefix)]
    average = fmean(known) if known else overall
    steps = [
        Timed(
            step.name,
            _step_seconds(step, durations.get(f"{prefix}{step.name}", average), now),
            step.depends_on,
        )
        for step in phase.steps
    ]
    return _combined_seconds(phase.strategy, steps)


def _step_seconds(step: TimedStep, expected: float, now: datetime) -> float:
    if step.status is Status.COMPLETE:
        return 0.0
    if step.status.running and step.started is not None:
        expected -= (now - step.started).total_seconds()
    return max(expected, 0.0)


def _combined_seconds(strategy: StrategySpec, children: Sequence[Timed]) -> float:
    """Return the time that children take under a strategy; a developer's own counts as parallel."""
    record = record_of(strategy.name)
    return (record.estimate if record is not None else parallel_seconds)(children, strategy)
