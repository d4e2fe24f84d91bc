"""How one deployment is rolled out, in place of its plan's own strategies.

``rolled_out`` rewrites the strategies of the phases that launch pods; phases of other work stay as
they are, and so do the plan's own order of its phases and everything that a step does.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pydantic import Field

from temporal_plans.domain.errors import Problem, SpecError
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.plan import PhaseSpec, PlanSpec, PodWork, StepSpec, StrategySpec
from temporal_plans.domain.strategies import CANARIES
from temporal_plans.domain.strategies.waves import wave_sizes


class Rollout(CompactValue):
    """How one deployment is rolled out, in place of its plan's own strategies.

    ``canary``: so many pods of every phase, the first that are not complete, wait for a continue
    each; the rest follow the last of them. ``max_unavailable``: at most so many pods of a phase are
    worked on at a time. With both, the bound holds for the pods that were continued, too.
    """

    canary: int | None = Field(default=None, ge=1, le=1000)
    max_unavailable: int | None = Field(default=None, ge=1, le=1000)


_BOUNDED = "max-parallel"
_BOUNDED_CANARY = "max-parallel-canary"

_BOUNDABLE = frozenset({"serial", "parallel", "dependency", _BOUNDED})
"""Orders that ``max-parallel`` can take the place of: it keeps dependencies."""

_CANARY_OF: Mapping[str, str] = MappingProxyType(
    {
        "serial": "serial-canary",
        "parallel": "parallel-canary",
        "dependency": "dependency-canary",
        _BOUNDED: _BOUNDED_CANARY,
    }
)


def rolled_out(plan: PlanSpec, rollout: Rollout) -> PlanSpec:
    """The plan with the strategies that the rollout asks for.

    ``max_unavailable`` makes every phase of pods ``max-parallel``, a serial one too: it then works
    on as many at once as it may. The steps of one instance stay in their order, by dependencies.
    Waves stay, in portions of that size; so does ``random``, which works on one at a time anyway.
    ``canary`` puts gates before whichever order there is then.

    Raises SpecError with a problem for every phase whose strategy can't do it.
    """
    made = [_rolled_out(phase, rollout) for phase in plan.phases]
    problems = [result for result in made if isinstance(result, Problem)]
    if problems:
        raise SpecError(problems)
    phases = tuple(result for result in made if isinstance(result, PhaseSpec))
    return plan if phases == plan.phases else plan.but(phases=phases)


def _rolled_out(phase: PhaseSpec, rollout: Rollout) -> PhaseSpec | Problem:
    if not any(isinstance(step.work, PodWork) for step in phase.steps):
        return phase
    bounded: PhaseSpec | Problem = phase
    if rollout.max_unavailable is not None:
        bounded = _bounded(phase, rollout.max_unavailable)
    if rollout.canary is None or isinstance(bounded, Problem):
        return bounded
    return _with_canary(bounded, rollout.canary)


def _bounded(phase: PhaseSpec, limit: int) -> PhaseSpec | Problem:
    spec = phase.strategy
    order = CANARIES.get(spec.name, spec.name)
    if order == "random":
        return phase
    if order == "waves":
        return phase.but(strategy=spec.but(waves=_portions(spec, len(phase.steps), limit)))
    if order not in _BOUNDABLE:
        return Problem(
            path=f"phases.{phase.name}.strategy",
            message="max-unavailable can't bound this strategy",
            value=spec.name,
            fix="deploy without it, or use serial, parallel, max-parallel or waves in the plan",
        )
    bounded = StrategySpec(name=_BOUNDED, limit=limit)
    if spec.name in CANARIES:
        bounded = bounded.but(name=_BOUNDED_CANARY, proceeds=spec.proceeds)
    steps = tuple(_in_order(phase.steps)) if order == "serial" else phase.steps
    return phase.but(strategy=bounded, steps=steps)


def _portions(spec: StrategySpec, total: int, limit: int) -> tuple[int, ...]:
    """The same waves, none larger than the limit."""
    return tuple(
        min(limit, size - start)
        for size in wave_sizes(spec.waves, total)
        for start in range(0, size, limit)
    )


def _in_order(steps: Sequence[StepSpec]) -> Iterator[StepSpec]:
    """The steps of a serial phase with what is left of its order: each after the earlier ones of
    its instance; what is no pod after all that is before it, and before all that is after it."""
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


def _instance(work: PodWork) -> str:
    return f"{work.pod}-{work.index}"


def _with_canary(phase: PhaseSpec, gates: int) -> PhaseSpec | Problem:
    spec = phase.strategy
    name = _CANARY_OF.get(CANARIES.get(spec.name, spec.name))
    path = f"phases.{phase.name}.strategy"
    if name is None:
        return Problem(
            path=path,
            message="this strategy can't wait at canary gates",
            value=spec.name,
            fix="deploy without canary, or use serial, parallel or max-parallel in the plan",
        )
    several = _several_steps(phase)
    if several:
        return Problem(
            path=path,
            message=f"canary counts pods, but several steps work on {several}: they would wait"
            " one by one",
            value=spec.name,
            fix="deploy without canary, or write a canary strategy in the plan: it counts steps",
        )
    return phase.but(strategy=spec.but(name=name, proceeds=gates))


def _several_steps(phase: PhaseSpec) -> str:
    """An instance that several of the steps work on; empty when there is none."""
    counts = Counter(_instance(s.work) for s in phase.steps if isinstance(s.work, PodWork))
    return next((instance for instance, count in counts.items() if count > 1), "")
