"""The check of what the templates of a package give with its defaults."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from temporal_plans.domain.packages.findings import Finding, error, warning
from temporal_plans.domain.packages.package import OPERATOR_FILE, TEMPLATES_FOLDER, Package
from temporal_plans.domain.packages.plans import DEPLOY
from temporal_plans.domain.packages.removed_versions import raised_version
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.loading.packages.contexts import Installation, render_package
from temporal_plans.loading.packages.objects import read_objects
from temporal_plans.loading.packages.templates import StepPlace

_PLACE = StepPlace(DEPLOY, "phase", "step")
_NAME, _NAMESPACE = "name", "namespace"
_NAMESPACE_KIND = "Namespace"


def rendering_findings(package: Package, unusable: Collection[str]) -> Iterator[Finding]:
    """Yield an error for each template that can't be rendered with the defaults, or that gives what
    is no object; and for a manifest of the namespace that is none.

    ``unusable`` are the keys of templates with other errors: they are left out. Parameters without
    a default are empty. Raises ValueError when a default can't be decoded.
    """
    keys = [key for key in package.templates if key not in unusable]
    pipes = {key: key.lower() for task in package.operator.tasks for key in task.pipes}
    rendered = render_package(Installation(package, _NAME, _NAMESPACE), keys, _PLACE, pipes)
    parameter_files = _parameter_files(package)
    for key, text in rendered.items():
        if isinstance(text, Reason):
            yield _unrendered(key, text)
        elif key not in parameter_files:
            yield from _of_objects(package, key, text)


def _parameter_files(package: Package) -> set[str]:
    tasks = package.operator.tasks
    objects = {key for task in tasks for key in task.templates}
    return {task.parameter_template for task in tasks} - objects


def _unrendered(key: str, reason: Reason) -> Finding:
    problem = f"can't be rendered with the defaults: {reason.problem}"
    return error(_file(key), "", problem, fix=reason.fix).but(line=reason.line)


def _of_objects(package: Package, key: str, text: str) -> Iterator[Finding]:
    found = read_objects(text)
    for fault in found.faults:
        yield error(_file(key), fault.field, _in_rendered(fault), value=fault.value, fix=fault.fix)
    for doubt in found.doubts:
        yield warning(
            _file(key), doubt.field, _in_rendered(doubt), value=doubt.value, fix=doubt.fix
        )
    yield from _of_removed_versions(key, found.objects)
    kinds = [each["kind"] for each in found.objects]
    if key == package.operator.namespace_manifest:
        if kinds != [_NAMESPACE_KIND] and not found.faults:
            fix = "write one Namespace and nothing else"
            problem = f"gives {', '.join(map(str, kinds)) or 'nothing'} instead of one Namespace"
            yield error(OPERATOR_FILE, "namespaceManifest", problem, value=key, fix=fix)
    elif _NAMESPACE_KIND in kinds:
        fix = f"name a file with it as namespaceManifest in {OPERATOR_FILE}"
        yield error(_file(key), "kind", "is a Namespace, which no task may apply", fix=fix)


def _of_removed_versions(key: str, objects: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    raised = {(one["kind"], one["apiVersion"]): raised_version(one) for one in objects}
    for (kind, version), successor in raised.items():
        if successor:
            problem = f"was removed from Kubernetes; the {kind} is applied as {successor}"
            fix = f"write {successor}"
            yield warning(_file(key), "apiVersion", problem, value=version, fix=fix)


def _in_rendered(reason: Reason) -> str:
    where = "" if reason.line is None else f" (line {reason.line} of the rendered text)"
    return f"{reason.problem}{where}"


def _file(key: str) -> str:
    return f"{TEMPLATES_FOLDER}/{key}"
