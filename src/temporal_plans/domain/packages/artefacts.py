"""The Secrets and ConfigMaps that keep the files of Pipe tasks: their names, by key."""

import re
from collections.abc import Iterator

from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.packages.plans import DEPLOY

_LEFT_OUT = re.compile(r"[^a-z0-9]")


def object_name(*parts: str) -> str:
    """Return the name of an object of a Pipe task: its parts in lower case, without anything but
    letters and digits, with dots between them."""
    return ".".join(_LEFT_OUT.sub("", part.lower()) for part in parts)


def artefacts(package: Package, plan: str, name: str) -> dict[str, str]:
    """Return `.Pipes` of the templates of a plan: for each key the name of its object.

    ``name`` is that of the instance. A key that only another plan makes has the name of that plan's
    object (``deploy`` has precedence), so that a plan which applies the same template again finds
    what was made at the installation. The first task with a key has precedence in its plan.
    """
    found: dict[str, str] = {}
    for each in dict.fromkeys((plan, DEPLOY, *package.operator.plans)):
        for key, artefact in _of_plan(package, each, name):
            found.setdefault(key, artefact)
    return found


def _of_plan(package: Package, plan: str, name: str) -> Iterator[tuple[str, str]]:
    tasks = {task.name: task for task in package.operator.tasks}
    if plan not in package.operator.plans:
        return
    for phase, step in package.plan(plan).steps():
        for task in step.tasks:
            for key in tasks[task].pipes if task in tasks else ():
                yield key, object_name(name, plan, phase.name, step.name, task, key)
