"""A package's plans as plans of the engine."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.package_tasks import PackageTasksWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.packages.installation import PackageDefinition, Switches
from temporal_plans.domain.packages.parameters import Parameter
from temporal_plans.domain.packages.plans import PackagePhase, PackagePlan, PackageStep
from temporal_plans.domain.plans import plan_check
from temporal_plans.domain.plans.parameters import NAME
from temporal_plans.domain.plans.plan import ParameterSpec, PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategies import NAMES, keeping_dependencies
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Reason

_Child = TypeVar("_Child", PackagePhase, PackageStep)


def plan_specs(package: PackageDefinition, switches: Switches) -> dict[str, PlanSpec]:
    """Return all plans of a package by name, ``cleanup`` included. Without phases one is complete
    at once. Of two phases, or two steps of a phase, with one name the first has precedence."""
    parameters = parameter_specs(package)
    return {
        name: _plan(name, plan, parameters, switches.absent_strategy)
        for name, plan in package.plans.items()
    }


def parameter_specs(package: PackageDefinition) -> tuple[ParameterSpec, ...]:
    """Return the parameters that a start may set for one run, without defaults: what is not given
    has the value of the installation. Secret ones can't be set, because what a start gives is
    stored; nor can those with a name that parameters of plans can't have."""
    return tuple(
        ParameterSpec(name=one.name) for one in package.by_name.values() if _may_be_set(one)
    )


def _may_be_set(one: Parameter) -> bool:
    return not one.secret and not one.immutable and NAME.fullmatch(one.name) is not None


def plan_faults(package: PackageDefinition, switches: Switches) -> Iterator[Reason]:
    """Yield every reason why a plan of the package could not run as it is meant."""
    tasks = {task.name for task in package.operator.tasks}
    for name, spec in plan_specs(package, switches).items():
        for problem in plan_check.problems(spec, NAMES, may_be_empty=True):
            yield problem.but(field=f"plans.{name}.{problem.field}")
        for other in package.plans[name].conflicts_with or ():
            if other not in package.plans:
                field = f"plans.{name}.conflictsWith"
                fix = suggestion(other, package.plans)
                yield Reason(field=field, problem="names no plan", value=other, fix=fix)
        for phase, step in package.plans[name].steps():
            path = f"plans.{name}.phases.{phase.name}.steps.{step.name}"
            if step.is_ambiguous:
                yield ambiguous(path)
            for task in step.tasks:
                if task not in tasks:
                    field = f"{path}.tasks"
                    fix = suggestion(task, tasks)
                    yield Reason(field=field, problem="names no task", value=task, fix=fix)


def ambiguous(path: str) -> Reason:
    """Return the reason against a step that is to do several things."""
    fix = "make steps of it, one after the other"
    return Reason(field=path, problem="has more than one of tasks, approval and sleep", fix=fix)


def _plan(
    name: str, plan: PackagePlan, parameters: tuple[ParameterSpec, ...], absent: str
) -> PlanSpec:
    return PlanSpec(
        name=name,
        strategy=_strategy(plan.strategy, absent, plan.phases),
        parameters=parameters,
        on_error=plan.on_error,
        reentrant=plan.reentrant,
        phases=tuple(_phase(phase, absent) for phase in _by_name(plan.phases)),
    )


def _phase(phase: PackagePhase, absent: str) -> PhaseSpec:
    return PhaseSpec(
        name=phase.name,
        strategy=_strategy(phase.strategy, absent, phase.steps),
        depends_on=phase.depends_on,
        steps=tuple(_step(step) for step in _by_name(phase.steps)),
    )


def _strategy(
    written: StrategySpec | None, absent: str, children: Sequence[_Child]
) -> StrategySpec:
    spec = written or StrategySpec(name=absent)
    if any(child.depends_on for child in children):
        return spec.but(name=keeping_dependencies(spec.name))
    return spec


def _by_name(children: Iterable[_Child]) -> Iterable[_Child]:
    """Return the children without those that have the name of an earlier one."""
    found: dict[str, _Child] = {}
    for child in children:
        found.setdefault(child.name, child)
    return found.values()


def _step(step: PackageStep) -> StepSpec:
    return StepSpec(name=step.name, work=_work(step), depends_on=step.depends_on)


def _work(step: PackageStep) -> Work:
    if step.approval is not None:
        return ApprovalWork(message=step.approval)
    if step.sleep is not None:
        return SleepWork(duration=step.sleep)
    return PackageTasksWork(tasks=step.tasks)
