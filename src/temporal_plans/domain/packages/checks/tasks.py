"""Checks of tasks."""

from collections import Counter
from collections.abc import Iterator

from temporal_plans.domain.packages.checks.subject import Subject
from temporal_plans.domain.packages.findings import Finding, error, warning
from temporal_plans.domain.packages.package import OPERATOR_FILE, TEMPLATES_FOLDER
from temporal_plans.domain.packages.tasks import BY_NAME
from temporal_plans.domain.packages.tasks.custom import CustomTask
from temporal_plans.domain.values.names import suggestion


def specs(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each unknown kind and for what is wrong with a spec; a warning for what is
    hardly meant."""
    for task in subject.package.operator.tasks:
        path = f"tasks.{task.name}"
        if isinstance(task, CustomTask) and task.type not in subject.task_kinds:
            fix = suggestion(task.type, [*BY_NAME, *subject.task_kinds])
            yield error(OPERATOR_FILE, f"{path}.kind", "is unknown", value=task.type, fix=fix)
        for fault in task.faults():
            field = f"{path}.spec.{fault.field}"
            yield error(OPERATOR_FILE, field, fault.problem, value=fault.value, fix=fault.fix)
        for doubt in task.doubts():
            field = f"{path}.spec.{doubt.field}"
            yield warning(OPERATOR_FILE, field, doubt.problem, value=doubt.value, fix=doubt.fix)


def names(subject: Subject) -> Iterator[Finding]:
    """Yield a warning for each task that has the name of another, or that no plan uses."""
    tasks = subject.package.operator.tasks
    used = subject.package.used_tasks()
    for name, count in Counter(task.name for task in tasks).items():
        if count > 1:
            fix = "rename all but one; the last has precedence"
            yield warning(OPERATOR_FILE, f"tasks.{name}", "is defined twice", fix=fix)
        if name not in used:
            fix = "use it in a step, or remove it"
            yield warning(OPERATOR_FILE, f"tasks.{name}", "is used in no plan", fix=fix)


def references(subject: Subject) -> Iterator[Finding]:
    """Yield an error for each template and each parameter that a task names and the package lacks,
    for the manifest of the namespace, too."""
    package = subject.package
    parameters = {one.name for one in package.parameters}
    for task in package.operator.tasks:
        path = f"tasks.{task.name}.spec"
        templates = [*task.templates, *filter(None, [task.parameter_template])]
        for key in dict.fromkeys(templates):
            if key not in package.templates:
                yield _no_template(path, key, package.templates)
        for name in task.parameters:
            if name not in parameters:
                fix = suggestion(name, parameters)
                yield error(
                    OPERATOR_FILE, f"{path}.parameter", "is not defined", value=name, fix=fix
                )
    manifest = package.operator.namespace_manifest
    if manifest and manifest not in package.templates:
        yield _no_template("namespaceManifest", manifest, package.templates)


def _no_template(path: str, key: str, known: dict[str, str]) -> Finding:
    problem = f"names a file that is not in {TEMPLATES_FOLDER}/"
    return error(OPERATOR_FILE, path, problem, value=key, fix=suggestion(key, known))
