"""Checks of plans."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from temporal_plans.domain.packages.checks.subject import Subject
from temporal_plans.domain.packages.findings import Finding, Severity, error, of, warning
from temporal_plans.domain.packages.package import OPERATOR_FILE
from temporal_plans.domain.packages.plan_specs import ambiguous
from temporal_plans.domain.packages.plans import DEPLOY, PARALLEL, SERIAL, PackagePlan
from temporal_plans.domain.plans.strategies import NAMES, keeping_dependencies
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.strategy_check import (
    Child,
    dependency_problems,
    strategy_problems,
)
from temporal_plans.domain.values.names import name_fault, suggestion


def deploy(subject: Subject) -> Iterator[Finding]:
    """Yield an error without a plan ``deploy``."""
    plans = subject.package.operator.plans
    if DEPLOY not in plans:
        fix = f"add the plan {DEPLOY}, which installs"
        yield error(OPERATOR_FILE, f"plans.{DEPLOY}", "is missing", fix=fix)


def names(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each name that a plan, a phase or a step can't have, and a warning for
    each that stands in it twice."""
    for name, plan in subject.package.operator.plans.items():
        yield from _names("plans", [name])
        yield from _names(f"plans.{name}.phases", [phase.name for phase in plan.phases])
        for phase in plan.phases:
            path = f"plans.{name}.phases.{phase.name}.steps"
            yield from _names(path, [step.name for step in phase.steps])


def _names(path: str, found: Iterable[str]) -> Iterator[Finding]:
    for name, count in Counter(found).items():
        if fault := name_fault(name):
            yield error(OPERATOR_FILE, f"{path}.{name}", fault, fix="rename it")
        if count > 1:
            problem = "has the name of another, and is left out"
            yield warning(OPERATOR_FILE, f"{path}.{name}", problem, fix="rename it")


def strategies(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each strategy that is unknown or lacks settings, and a warning where none
    is written and it makes a difference."""
    for name, plan in subject.package.operator.plans.items():
        yield from _strategy(f"plans.{name}.strategy", plan.strategy, len(plan.phases))
        for phase in plan.phases:
            path = f"plans.{name}.phases.{phase.name}.strategy"
            yield from _strategy(path, phase.strategy, len(phase.steps))


def _strategy(path: str, strategy: StrategySpec | None, children: int) -> Iterator[Finding]:
    if strategy:
        for fault in strategy_problems(strategy, path, NAMES):
            yield of(fault, Severity.ERROR, OPERATOR_FILE)
    elif children > 1:
        fix = f"write {SERIAL} or {PARALLEL}"
        yield warning(OPERATOR_FILE, path, f"is missing, and taken for {PARALLEL}", fix=fix)


def dependencies(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each sibling that a phase or a step depends on, and that is not there,
    makes a circle, or is not waited for by the strategy."""
    for name, plan in subject.package.operator.plans.items():
        yield from _dependencies(f"plans.{name}.phases", plan.strategy, plan.phases)
        for phase in plan.phases:
            path = f"plans.{name}.phases.{phase.name}.steps"
            yield from _dependencies(path, phase.strategy, phase.steps)


def _dependencies(
    path: str, strategy: StrategySpec | None, children: Sequence[Child]
) -> Iterator[Finding]:
    spec = strategy or StrategySpec(name=PARALLEL)
    spec = spec.but(name=keeping_dependencies(spec.name))
    for fault in dependency_problems(spec, children, path):
        yield of(fault, Severity.ERROR, OPERATOR_FILE)


def conflicts(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each plan that is to conflict with a plan that the package lacks."""
    plans = subject.package.operator.plans
    for name, plan in plans.items():
        for other in plan.conflicts_with or ():
            if other not in plans:
                path, fix = f"plans.{name}.conflictsWith", suggestion(other, plans)
                yield error(OPERATOR_FILE, path, "names no plan", value=other, fix=fix)


def tasks(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each task that a step names and the package lacks, and for each step that
    is to do several things; a warning for each that does nothing."""
    known = {task.name for task in subject.package.operator.tasks}
    for name, plan in subject.package.operator.plans.items():
        for phase, step in plan.steps():
            of_step = f"plans.{name}.phases.{phase.name}.steps.{step.name}"
            path = f"{of_step}.tasks"
            if step.is_ambiguous:
                yield of(ambiguous(of_step), Severity.ERROR, OPERATOR_FILE)
            if not step.tasks and not step.waits:
                yield warning(OPERATOR_FILE, path, "is empty", fix="name a task, or remove it")
            for task in step.tasks:
                if task not in known:
                    fix = suggestion(task, known)
                    yield error(OPERATOR_FILE, path, "names no task", value=task, fix=fix)


def pipes(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each key that two pipes of one plan have."""
    for name, plan in subject.package.operator.plans.items():
        for key, count in Counter(_pipe_keys(subject, plan)).items():
            if count > 1:
                problem = f"makes the artefact {key} in two tasks"
                yield error(OPERATOR_FILE, f"plans.{name}", problem, fix="rename one of the keys")


def _pipe_keys(subject: Subject, plan: PackagePlan) -> Iterator[str]:
    used = dict.fromkeys(task for _, step in plan.steps() for task in step.tasks)
    for task in subject.package.operator.tasks:
        if task.name in used:
            yield from dict.fromkeys(task.pipes)
