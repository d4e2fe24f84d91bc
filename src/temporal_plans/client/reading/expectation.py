"""The expected remaining time of a plan, from its last COMPLETE runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from temporal_plans.domain.plans.estimate import (
    TimedPhase,
    TimedPlan,
    TimedStep,
    averaged,
    remaining,
)
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView


@dataclass(frozen=True)
class Expectation:
    """A plan's step durations. ``spec`` has what views leave out, such as dependencies; ``seconds``
    are the mean durations of steps by ``phase/step``."""

    spec: PlanSpec
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def left(self, view: PlanView, now: datetime) -> timedelta | None:
        """Return the expected time until this plan is COMPLETE, or None when it is not known: the
        phases may be others by now, as when ``deploy`` uninstalls the service."""
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
    """Return the mean duration in seconds of each step (``phase/step``), over the runs that worked
    on it."""
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
    """Return the spec's strategy if it has this name. The plan may have changed since ``spec``."""
    return spec if spec is not None and spec.name == name else StrategySpec(name=name)
