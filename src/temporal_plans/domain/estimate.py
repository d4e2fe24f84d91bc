"""How long a plan will still take, from how long the same steps took before.

The estimate is of work: what waits for a person, an asset or an agent takes as long as it takes.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from graphlib import CycleError, TopologicalSorter
from statistics import fmean

from temporal_plans.domain.board import PlanBoard
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.plan import StrategySpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.strategies import CANARIES
from temporal_plans.domain.strategies.waves import wave_sizes

Durations = Mapping[str, float]
"""Seconds that steps took, by ``phase/step``."""


class TimedStep(CompactValue):
    """A step, as far as its time is concerned. ``started``: when work on it began."""

    name: str
    status: Status = Status.PENDING
    started: datetime | None = None
    depends_on: tuple[str, ...] = ()


class TimedPhase(CompactValue):
    name: str
    strategy: StrategySpec = StrategySpec()
    depends_on: tuple[str, ...] = ()
    steps: tuple[TimedStep, ...] = ()


class TimedPlan(CompactValue):
    strategy: StrategySpec = StrategySpec()
    phases: tuple[TimedPhase, ...] = ()


def timed_plan(board: PlanBoard) -> TimedPlan:
    """The tree of a plan as it is now."""
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
    """How long the completed steps of a plan took, by ``phase/step``. Those that somebody forced
    say nothing."""
    return {
        f"{phase.spec.name}/{spec.name}": (state.finished - state.started).total_seconds()
        for phase in board.phases
        for spec, state in zip(phase.spec.steps, phase.steps, strict=True)
        if state.complete and not state.forced and state.started and state.finished
    }


def averaged(runs: Iterable[Durations]) -> dict[str, float]:
    """The mean of each step over several runs."""
    seen: dict[str, list[float]] = {}
    for run in runs:
        for name, seconds in run.items():
            seen.setdefault(name, []).append(seconds)
    return {name: fmean(values) for name, values in seen.items()}


def remaining(plan: TimedPlan, durations: Durations, now: datetime) -> timedelta | None:
    """The expected time until the plan is complete; None when nothing is known to tell from.

    A step that was never measured is taken to be as long as its phase's others were on average, or
    else the plan's. A step at work has its time so far taken off, and is never owed less than
    nothing. Children of strategies that users registered are taken to run side by side.
    """
    incomplete = any(
        step.status is not Status.COMPLETE for phase in plan.phases for step in phase.steps
    )
    if not incomplete:
        return timedelta(0)
    if not durations:
        return None
    overall = fmean(durations.values())
    phases = [_phase_seconds(phase, durations, overall, now) for phase in plan.phases]
    names = [(phase.name, phase.depends_on) for phase in plan.phases]
    return timedelta(seconds=_together(plan.strategy, names, phases))


def _phase_seconds(phase: TimedPhase, durations: Durations, overall: float, now: datetime) -> float:
    prefix = f"{phase.name}/"
    known = [seconds for name, seconds in durations.items() if name.startswith(prefix)]
    usual = fmean(known) if known else overall
    steps = [
        _step_seconds(step, durations.get(f"{prefix}{step.name}", usual), now)
        for step in phase.steps
    ]
    names = [(step.name, step.depends_on) for step in phase.steps]
    return _together(phase.strategy, names, steps)


def _step_seconds(step: TimedStep, expected: float, now: datetime) -> float:
    if step.status is Status.COMPLETE:
        return 0.0
    if step.status.running and step.started is not None:
        expected -= (now - step.started).total_seconds()
    return max(expected, 0.0)


def _together(
    strategy: StrategySpec,
    names: Sequence[tuple[str, tuple[str, ...]]],
    seconds: Sequence[float],
) -> float:
    """The time that children with these times to go take under a strategy. ``names``: each with
    what it depends on."""
    longest = max(seconds, default=0.0)
    match CANARIES.get(strategy.name, strategy.name):
        case "serial" | "random":
            return sum(seconds)
        case "max-parallel":
            return max(longest, sum(seconds) / (strategy.limit or 1))
        case "waves":
            return _in_waves(wave_sizes(strategy.waves, len(seconds)), seconds)
        case "dependency":
            return _critical_path(names, seconds)
        case _:
            return longest


def _in_waves(sizes: Iterable[int], seconds: Sequence[float]) -> float:
    total, start = 0.0, 0
    for size in sizes:
        total += max(seconds[start : start + size], default=0.0)
        start += size
    return total


def _critical_path(names: Sequence[tuple[str, tuple[str, ...]]], seconds: Sequence[float]) -> float:
    """The longest way through what depends on what. With a circle, which a plan's check refuses,
    nothing can be told but the longest child."""
    own = {name: time for (name, _), time in zip(names, seconds, strict=True)}
    before = {name: [one for one in wanted if one in own] for name, wanted in names}
    ends: dict[str, float] = {}
    try:
        for name in TopologicalSorter(before).static_order():
            ends[name] = own[name] + max((ends[one] for one in before[name]), default=0.0)
    except CycleError:
        return max(seconds, default=0.0)
    return max(ends.values(), default=0.0)
