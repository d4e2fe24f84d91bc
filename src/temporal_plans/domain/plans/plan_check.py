"""The checks of a plan beyond its form: names, order, strategies, parameters.

Used wherever a plan is accepted: loading a file, starting a Plan workflow, the command line.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import cast

from temporal_plans.domain.kinds.custom import CustomWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.parameters import declaration_problems
from temporal_plans.domain.plans.plan import STEPS_LIMIT, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategy_check import Child, dependency_problems, strategy_problems
from temporal_plans.domain.values.names import MAX_NAME, MAX_POD_STEP_NAME, name_fault, suggestion
from temporal_plans.domain.values.refusal import Reason


def problems(
    spec: PlanSpec,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
    *,
    of_service: bool = True,
    may_be_empty: bool = False,
) -> tuple[Reason, ...]:
    """Return all problems of the plan; empty when it can run.

    ``strategies`` and ``step_kinds`` are the names that the worker knows (``step_kinds``: of custom
    steps). None: the worker checks the names. Only a plan ``of_service`` may have steps that
    remove something of a service; only one that ``may_be_empty`` needs no phases.
    """
    if wrong := tuple(_wrong_types(spec.phases)):
        return wrong
    found = list(_plan_problems(spec, strategies, step_kinds, may_be_empty=may_be_empty))
    return (*found, *(() if of_service else _service_problems(spec)))


def phase_problems(
    phase: PhaseSpec,
    strategies: Collection[str] | None = None,
    step_kinds: Collection[str] | None = None,
) -> tuple[Reason, ...]:
    """Return all problems of a phase that is added to a plan by itself."""
    if wrong := tuple(_wrong_types((phase,))):
        return wrong
    return (
        *_child_problems((phase,), "phases"),
        *_phase_problems(phase, f"phases.{phase.name}", strategies, step_kinds),
    )


def _wrong_types(phases: object) -> Iterator[Reason]:
    """Yield what is no phase or no step: a plan that Python code changed is not validated again."""
    if not isinstance(phases, tuple | list):
        yield _wrong_type("phases", phases, "a tuple of PhaseSpec")
        return
    for index, phase in enumerate(cast(Sequence[object], phases)):
        if not isinstance(phase, PhaseSpec):
            yield _wrong_type(f"phases.{getattr(phase, 'name', index)}", phase, "a PhaseSpec")
            continue
        path, steps = f"phases.{phase.name}.steps", cast(object, phase.steps)
        if not isinstance(steps, tuple | list):
            yield _wrong_type(path, steps, "a tuple of StepSpec")
            continue
        for number, step in enumerate(cast(Sequence[object], steps)):
            if not isinstance(step, StepSpec):
                name = getattr(step, "name", None) or number
                yield _wrong_type(f"{path}.{name}", step, "a StepSpec")


def _wrong_type(field: str, value: object, wanted: str) -> Reason:
    found = f"{type(value).__module__}.{type(value).__qualname__}"
    return Reason(
        field=field,
        problem=f"is not {wanted}",
        value=found.removeprefix("builtins."),
        fix="take phases and steps from a plan that temporal_plans.build.plan made",
    )


def _service_problems(spec: PlanSpec) -> Iterator[Reason]:
    for phase in spec.phases:
        for step in phase.steps:
            if step.work.removes:
                yield Reason(
                    field=f"phases.{phase.name}.steps.{step.name}.{step.work.kind}",
                    problem="removes something of a service, but this plan belongs to no service",
                    fix="decommission or uninstall the service; it makes such plans itself",
                )


def _plan_problems(
    spec: PlanSpec,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
    *,
    may_be_empty: bool,
) -> Iterator[Reason]:
    fault = name_fault(spec.name)
    if fault:
        yield Reason(field="name", problem=fault, value=spec.name)
    yield from strategy_problems(spec.strategy, "strategy", strategies)
    yield from declaration_problems(spec.parameters or (), "parameters")
    if not spec.phases and not may_be_empty:
        yield Reason(field="phases", problem="the plan has no phases", fix="add a phase with steps")
    if (steps := sum(len(phase.steps) for phase in spec.phases)) > STEPS_LIMIT:
        yield Reason(
            field="phases",
            problem=f"a plan has at most {STEPS_LIMIT} steps",
            value=steps,
            fix="make several plans of it",
        )
    yield from _child_problems(spec.phases, "phases")
    yield from dependency_problems(spec.strategy, spec.phases, "phases")
    for phase in spec.phases:
        yield from _phase_problems(phase, f"phases.{phase.name}", strategies, step_kinds)


def _phase_problems(
    phase: PhaseSpec,
    path: str,
    strategies: Collection[str] | None,
    step_kinds: Collection[str] | None,
) -> Iterator[Reason]:
    yield from strategy_problems(phase.strategy, f"{path}.strategy", strategies)
    yield from _child_problems(phase.steps, f"{path}.steps")
    yield from dependency_problems(phase.strategy, phase.steps, f"{path}.steps")
    for step in phase.steps:
        yield from _work_problems(step, f"{path}.steps.{step.name}", step_kinds)


def _child_problems(children: Sequence[Child], path: str) -> Iterator[Reason]:
    seen: set[str] = set()
    for child in children:
        of_pod = isinstance(child, StepSpec) and isinstance(child.work, PodWork)
        fault = name_fault(child.name, MAX_POD_STEP_NAME if of_pod else MAX_NAME)
        if fault:
            yield Reason(field=f"{path}.{child.name}", problem=fault, value=child.name)
        elif child.name in seen:
            yield Reason(
                field=f"{path}.{child.name}",
                problem="another element of the same parent has the same name",
                fix="use different names",
            )
        seen.add(child.name)


def _work_problems(
    step: StepSpec, path: str, step_kinds: Collection[str] | None
) -> Iterator[Reason]:
    work = step.work
    path = f"{path}.{work.kind}"
    if isinstance(work, CustomWork) and step_kinds is not None and work.type not in step_kinds:
        yield Reason(
            field=f"{path}.type",
            problem="unknown kind of step",
            value=work.type,
            fix=suggestion(work.type, step_kinds) or "register it with PlansPlugin on the worker",
        )
    if not step.errors:  # such a step is never executed
        yield from work.faults(path)
