"""Operator packages as lines: what was found in one, its plans, its tasks, its parameters."""

from collections.abc import Iterable

from rich.text import Text

from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.duration import duration
from temporal_plans.cli.terminal.output import one_line, printable
from temporal_plans.domain.packages.findings import Finding, Verification
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.packages.plans import PARALLEL, PackagePhase, PackagePlan, PackageStep
from temporal_plans.domain.packages.tasks import AnyTask
from temporal_plans.domain.packages.tasks.custom import CustomTask
from temporal_plans.domain.packages.tasks.nested import NestedTask
from temporal_plans.domain.plans.strategies.spec import StrategySpec


def summary(package: Package) -> str:
    """Return what a package is, on one line."""
    operator = package.operator
    about = f", application {operator.app_version}" if operator.app_version else ""
    counts = ", ".join(
        [
            count(len(operator.plans), "plan"),
            count(len(operator.tasks), "task"),
            count(len(package.parameters), "parameter"),
            count(len(package.templates), "template"),
        ]
    )
    name = operator.name or "<no name>"
    return one_line(f"package {name} {operator.operator_version}{about}: {counts}")


def findings(result: Verification) -> list[Text]:
    """Return the errors and the warnings, a line each, and whether the package is valid."""
    lines = [*_listed("Errors", "bold red", result.errors)]
    lines += _listed("Warnings", "yellow", result.warnings)
    verdict = "The package is valid." if result.valid else "The package is not valid."
    return [*lines, Text(), Text(verdict, style="green" if result.valid else "bold red")]


def _listed(title: str, style: str, found: Iterable[Finding]) -> list[Text]:
    lines = [Text(f"- {one_line(str(one))}") for one in found]
    return [Text(), Text(f"{title}:", style=style), *lines] if lines else []


def plan_trees(package: Package) -> list[Text]:
    """Return all plans as trees; a step with the names of its tasks, unless it has its name."""
    lines: list[Text] = []
    for name, plan in package.operator.plans.items():
        lines += [Text(), *_plan(name, plan)] if lines else _plan(name, plan)
    return lines


def _plan(name: str, plan: PackagePlan) -> list[Text]:
    lines = [_head(name, plan.strategy)]
    for index, phase in enumerate(plan.phases):
        last = index == len(plan.phases) - 1
        lines.append(Text.assemble(("└─ " if last else "├─ ", "dim"), _head_of(phase)))
        lines += _steps(phase, "   " if last else "│  ")
    return lines


def _steps(phase: PackagePhase, indent: str) -> list[Text]:
    lines: list[Text] = []
    for index, step in enumerate(phase.steps):
        last = index == len(phase.steps) - 1
        mark = f"{indent}{'└─' if last else '├─'} "
        lines.append(Text.assemble((mark, "dim"), one_line(f"{step.name}{_work(step)}")))
    return lines


def _work(step: PackageStep) -> str:
    if step.approval is not None:
        return f": approval {step.approval}".rstrip()
    if step.sleep is not None:
        return f": sleep {duration(step.sleep)}"
    return "" if step.tasks == (step.name,) else f": {', '.join(step.tasks) or 'no task'}"


def _head_of(phase: PackagePhase) -> Text:
    return _head(phase.name, phase.strategy)


def _head(name: str, strategy: StrategySpec | None) -> Text:
    return Text(one_line(f"{name} ({strategy.name if strategy else PARALLEL} strategy)"))


def task_table(package: Package) -> list[Text]:
    """Return the tasks: what each does, with what, and the plans with it."""
    rows = [
        (
            task.name,
            task.type if isinstance(task, CustomTask) else str(task.kind),
            ", ".join(_subjects(task)),
            ", ".join(_plans_with(package, task.name)),
        )
        for task in package.operator.tasks
    ]
    return columns(("NAME", "KIND", "WITH", "PLANS"), rows)


def _subjects(task: AnyTask) -> Iterable[str]:
    yield from task.templates
    yield from (f"if {name}" for name in task.parameters)
    if isinstance(task, NestedTask):
        yield task.package
        yield from filter(None, [task.parameter_template])
    yield from (f".Pipes.{key}" for key in task.pipes)


def _plans_with(package: Package, task: str) -> Iterable[str]:
    for name, plan in package.operator.plans.items():
        if any(task in step.tasks for _, step in plan.steps()):
            yield name


def parameter_table(package: Package) -> list[Text]:
    """Return the parameters: type, default, the plan that a change starts, and more."""
    rows = [
        (
            one.name,
            one.type,
            _default(one.default, one.required),
            one.trigger,
            "immutable" if one.immutable else "",
            ", ".join(one.enum or ()),
            one.description,
        )
        for one in package.parameters
    ]
    head = ("NAME", "TYPE", "DEFAULT", "TRIGGER", "CHANGE", "CHOICES", "DESCRIPTION")
    return columns(head, rows)


def _default(default: str | None, required: bool) -> str:
    if default is None:
        return "(required)" if required else ""
    return printable(default) if default else '""'


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `2 plans`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
