"""How one deployment is rolled out, in place of its plan's own strategies.

``rolled_out`` rewrites the strategies of the phases that launch pods; phases of other work stay as
they are, and so do the plan's own order of its phases and everything that a step does.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import Field

from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategies import CANARIES, record_of
from temporal_plans.domain.plans.strategies.chance import RANDOM
from temporal_plans.domain.plans.strategies.max_parallel import MAX_PARALLEL
from temporal_plans.domain.plans.strategies.record import Dependencies
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.strategies.waves import WAVES, wave_sizes
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason, SpecError


class PhaseRollout(CompactValue):
    """How the pods of a phase are rolled out.

    ``canary``: the number of pods, the first that are not complete, that wait for a continue each;
    the rest follow the last of them. ``max_unavailable``: the limit of pods that are worked on at a
    time. With both, the limit holds for the continued pods, too.
    """

    canary: int | None = Field(default=None, ge=1, le=1000)
    max_unavailable: int | None = Field(default=None, ge=1, le=1000)


class Rollout(PhaseRollout):
    """How one deployment is rolled out, in place of its plan's own strategies.

    The two numbers are those of every phase of pods; ``phases`` has other numbers for phases by
    name.
    """

    phases: dict[str, PhaseRollout] = {}

    def of(self, phase: str) -> PhaseRollout:
        """Return the numbers of a phase."""
        own = self.phases.get(phase, PhaseRollout())
        return PhaseRollout(
            canary=self.canary if own.canary is None else own.canary,
            max_unavailable=(
                self.max_unavailable if own.max_unavailable is None else own.max_unavailable
            ),
        )


def rolled_out(plan: PlanSpec, rollout: Rollout) -> PlanSpec:
    """Return the plan with the strategies of the rollout.

    ``max_unavailable`` makes every phase of pods ``max-parallel``, a serial phase too: it then
    works on as many pods at once as the limit permits. The steps of one instance stay in their
    order, by dependencies. Waves stay, in portions of that size; so does ``random``, which works on
    one pod at a time. ``canary`` puts gates before the resulting order: one before each pod, all
    steps of which follow the continue.

    Raises SpecError with a problem for every phase whose strategy can't do it, and for every phase
    in ``rollout.phases`` that the plan has not, or that launches no pods.
    """
    made = [_rolled_out(phase, rollout.of(phase.name)) for phase in plan.phases]
    problems = [*_unknown(plan, rollout), *(one for one in made if isinstance(one, Reason))]
    if problems:
        raise SpecError(problems)
    phases = tuple(result for result in made if isinstance(result, PhaseSpec))
    return plan if phases == plan.phases else plan.but(phases=phases)


def _unknown(plan: PlanSpec, rollout: Rollout) -> Iterator[Reason]:
    """Yield a reason for every phase that the rollout names and can't apply to."""
    launching = [phase.name for phase in plan.phases if _launches_pods(phase)]
    for name in rollout.phases:
        if name not in launching:
            known = any(phase.name == name for phase in plan.phases)
            yield Reason(
                field=f"rollout.phases.{name}",
                problem="this phase launches no pods" if known else "the plan has no such phase",
                value=name,
                fix=suggestion(name, launching) or "deploy without it",
            )


def _launches_pods(phase: PhaseSpec) -> bool:
    return any(isinstance(step.work, PodWork) for step in phase.steps)


def _rolled_out(phase: PhaseSpec, rollout: PhaseRollout) -> PhaseSpec | Reason:
    if not _launches_pods(phase):
        return phase
    bounded: PhaseSpec | Reason = phase
    if rollout.max_unavailable is not None:
        bounded = _bounded(phase, rollout.max_unavailable)
    if rollout.canary is None or isinstance(bounded, Reason):
        return bounded
    return _with_canary(bounded, rollout.canary)


def _bounded(phase: PhaseSpec, limit: int) -> PhaseSpec | Reason:
    spec = phase.strategy
    record = record_of(spec.name)
    if record is RANDOM:
        return phase
    if record is WAVES:
        return phase.but(strategy=spec.but(waves=_portions(spec, len(phase.steps), limit)))
    if record is None or not record.boundable:
        return Reason(
            field=f"phases.{phase.name}.strategy",
            problem="max-unavailable can't bound this strategy",
            value=spec.name,
            fix="deploy without it or name other phases (--max-unavailable PHASE=N), or use"
            " serial, parallel, max-parallel or waves in the plan",
        )
    bounded = StrategySpec(name=MAX_PARALLEL.name, limit=limit)
    if spec.name in CANARIES:
        bounded = bounded.but(name=MAX_PARALLEL.gated[0], proceeds=spec.proceeds, gates=spec.gates)
    in_order = record.dependencies is Dependencies.EARLIER
    steps = tuple(_in_order(phase.steps)) if in_order else phase.steps
    return phase.but(strategy=bounded, steps=steps)


def _portions(spec: StrategySpec, total: int, limit: int) -> tuple[int, ...]:
    """Return the same waves, split so that none is larger than the limit."""
    return tuple(
        min(limit, size - start)
        for size in wave_sizes(spec.waves, total)
        for start in range(0, size, limit)
    )


def _in_order(steps: Sequence[StepSpec]) -> Iterator[StepSpec]:
    """Yield the steps of a serial phase with dependencies for the order that must remain: a pod
    step after the earlier steps of its instance; any other step after all earlier steps, and before
    all later ones."""
    of_instance: dict[str, tuple[str, ...]] = {}
    everything: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    for step in steps:
        if isinstance(step.work, PodWork):
            instance = _instance(step.work)
            before = of_instance.get(instance, ())
            of_instance[instance] = (*before, step.name)
            wanted = (*others, *before)
        else:
            wanted = everything
            others = (*others, step.name)
        everything = (*everything, step.name)
        yield step.but(depends_on=tuple(dict.fromkeys((*step.depends_on, *wanted))))


def _with_canary(phase: PhaseSpec, gates: int) -> PhaseSpec | Reason:
    spec = phase.strategy
    record = record_of(spec.name)
    if record is None or not record.gated:
        return Reason(
            field=f"phases.{phase.name}.strategy",
            problem="this strategy can't wait at canary gates",
            value=spec.name,
            fix="deploy without canary or name other phases (--canary PHASE=N), or use serial,"
            " parallel or max-parallel in the plan",
        )
    before = "pods" if _has_several_steps_a_pod(phase) else "steps"
    return phase.but(strategy=spec.but(name=record.gated[0], proceeds=gates, gates=before))


def _has_several_steps_a_pod(phase: PhaseSpec) -> bool:
    counts = Counter(_instance(s.work) for s in phase.steps if isinstance(s.work, PodWork))
    return any(count > 1 for count in counts.values())


def _instance(work: PodWork) -> str:
    return f"{work.pod}-{work.index}"
