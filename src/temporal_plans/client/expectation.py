"""How long a plan will still take, judged by the last runs of it that were COMPLETE."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporal_plans.domain.estimate import (
    TimedPhase,
    TimedPlan,
    TimedStep,
    averaged,
    remaining,
)
from temporal_plans.domain.plan import PhaseSpec, PlanSpec, StrategySpec
from temporal_plans.messages.plan import PhaseView, PlanView, StepView


@dataclass(frozen=True)
class Expectation:
    """``spec`` has what views leave out, such as what depends on what; ``seconds`` are the mean
    times that steps took, by ``phase/step``."""

    spec: PlanSpec
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def left(self, view: PlanView, now: datetime) -> timedelta | None:
        """The expected time until this plan is COMPLETE; None when nothing is known. A plan may
        have become another, with phases of which nothing is known: an uninstall is no deploy."""
        measured = {path.partition("/")[0] for path in self.seconds}
        if not any(phase.name in measured for phase in view.phases):
            return None
        return remaining(self._timed(view), self.seconds, now)

    def _timed(self, view: PlanView) -> TimedPlan:
        specs = {phase.name: phase for phase in self.spec.phases}
        return TimedPlan(
            strategy=_strategy(view.strategy, self.spec.strategy),
            phases=tuple(_phase(phase, specs.get(phase.name)) for phase in view.phases),
        )


def seconds_of(views: Iterable[PlanView]) -> dict[str, float]:
    """How long each step (``phase/step``) took, the mean over the runs that worked on it."""
    return averaged(_measured(view) for view in views)


def _measured(view: PlanView) -> dict[str, float]:
    return {
        f"{phase.name}/{step.name}": (step.finished - step.started).total_seconds()
        for phase in view.phases
        for step in phase.steps
        if step.started and step.finished and not step.forced
    }


def _phase(view: PhaseView, spec: PhaseSpec | None) -> TimedPhase:
    steps = {step.name: step for step in spec.steps} if spec else {}

    def timed(step: StepView) -> TimedStep:
        depends = steps[step.name].depends_on if step.name in steps else ()
        return TimedStep(
            name=step.name, status=step.status, started=step.started, depends_on=depends
        )

    return TimedPhase(
        name=view.name,
        strategy=_strategy(view.strategy, spec.strategy if spec else None),
        depends_on=spec.depends_on if spec else (),
        steps=tuple(map(timed, view.steps)),
    )


def _strategy(name: str, spec: StrategySpec | None) -> StrategySpec:
    """The plan may be another than the one whose spec this is: its successor."""
    return spec if spec is not None and spec.name == name else StrategySpec(name=name)
