"""Checks of what templates refer to."""

from collections.abc import Iterator

from temporal_plans.domain.packages.checks.subject import Subject
from temporal_plans.domain.packages.findings import Finding, error, warning
from temporal_plans.domain.packages.package import (
    OPERATOR_FILE,
    PARAMETERS_FILE,
    TEMPLATES_FOLDER,
)
from temporal_plans.domain.packages.template_use import ROOTS
from temporal_plans.domain.values.names import suggestion


def syntax(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each template that is not one."""
    for key, use in subject.uses.items():
        if use.fault is not None:
            problem, line = use.fault
            yield error(_file(key), "", problem).but(line=line)


def fields(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each field that templates do not have."""
    for key, use in subject.uses.items():
        for name, line in use.roots.items():
            if name not in ROOTS:
                problem, fix = "is unknown in templates", suggestion(name, ROOTS)
                yield error(_file(key), f".{name}", problem, fix=fix).but(line=line)


def parameters(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each parameter that a template uses and the package lacks, and a warning
    for each that nothing uses and that triggers no plan."""
    package = subject.package
    defined = {one.name for one in package.parameters}
    for key, use in subject.uses.items():
        for name, line in use.parameters.items():
            if name not in defined:
                fix = suggestion(name, defined) or f"define it in {PARAMETERS_FILE}"
                found = error(_file(key), f".Params.{name}", "is not defined", fix=fix)
                yield found.but(line=line)
    if any(use.all_parameters or use.fault for use in subject.uses.values()):
        return  # each may be used
    used = {name for use in subject.uses.values() for name in (*use.parameters, *use.looked_up)}
    used |= {name for task in package.operator.tasks for name in task.parameters}
    for one in package.parameters:
        if one.name not in used and not one.trigger:
            field = f"parameters.{one.name}"
            fix = "use it in a template, give it a trigger, or remove it"
            yield warning(PARAMETERS_FILE, field, "is used in no template", fix=fix)


def files(subject: Subject) -> Iterator[Finding]:
    """Yield a warning for each template that no task names."""
    operator = subject.package.operator
    used = {key for task in operator.tasks for key in (*task.templates, task.parameter_template)}
    used.add(operator.namespace_manifest)
    for key in subject.package.templates:
        if key not in used:
            fix = "name it in a task, or remove it"
            yield warning(_file(key), "", "is used in no task", fix=fix)


def pipes(subject: Subject) -> Iterator[Finding]:
    """Yield a warning for each artefact that templates use and no task makes, and for each that
    nothing uses."""
    made = {key: task.name for task in subject.package.operator.tasks for key in task.pipes}
    for key, use in subject.uses.items():
        for name, line in use.pipes.items():
            if name not in made:
                fix = suggestion(name, made) or "make it with a task of the kind Pipe"
                found = warning(_file(key), f".Pipes.{name}", "is made by no task", fix=fix)
                yield found.but(line=line)
    if any(use.all_pipes or use.fault for use in subject.uses.values()):
        return
    used = {name for use in subject.uses.values() for name in (*use.pipes, *use.looked_up)}
    for name, task in made.items():
        if name not in used:
            field = f"tasks.{task}.spec.pipe"
            fix = f"use .Pipes.{name} in a template, or remove it"
            yield warning(OPERATOR_FILE, field, "is used in no template", value=name, fix=fix)


def _file(key: str) -> str:
    return f"{TEMPLATES_FOLDER}/{key}"
