"""What tasks of a step work with, made of the order: parameters and rendered templates."""

import asyncio
from collections.abc import Mapping

from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import Cluster
from temporal_plans.activities.packages.access import LoadPackage
from temporal_plans.activities.packages.instance_objects import InstanceObjects
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.enhancement import Origin
from temporal_plans.domain.packages.package import Package
from temporal_plans.domain.values.refusal import Reason, RefusedError
from temporal_plans.loading.packages.contexts import Installation, render_package
from temporal_plans.loading.packages.structures import decode
from temporal_plans.loading.packages.templates import StepPlace
from temporal_plans.messages.packages import InstalledPackage, TasksInput


async def step_context(
    order: TasksInput,
    load: LoadPackage,
    secrets: Mapping[str, str],
    cluster: Cluster,
    client: Client,
) -> StepContext:
    """Return the context of a step, its templates rendered. ``load`` gives packages by digest;
    ``secrets`` are values by name of the parameter. Raises TaskProblem for a parameter that can't
    be decoded, and RefusedError for a package that can't be read."""
    installed = order.run.package
    package = await load(installed.content)
    installation = Installation(
        package=package,
        name=installed.instance,
        namespace=installed.namespace,
        given={**installed.given, **secrets, **order.arguments},
        secrets=frozenset(installed.secrets),
    )
    try:
        params = package.parameter_values(installation.given, decode)
    except ValueError:  # its text may have the value
        raise TaskProblem("a parameter can't be read: it is no YAML list or mapping") from None
    return StepContext(
        order=order,
        installation=installation,
        params=params,
        texts=await _rendered(installation, order),
        cluster=cluster,
        client=client,
        objects=InstanceObjects(cluster, origin_of(order, package), order.run.hashes),
        load=load,
    )


def origin_of(order: TasksInput, package: Package) -> Origin:
    """Return where the objects of a step come from."""
    return instance_origin(order.run.package, package).but(
        plan=order.plan, phase=order.phase, step=order.step, uid=order.run.uid
    )


def instance_origin(installed: InstalledPackage, package: Package) -> Origin:
    """Return where objects of an installed package come from, whatever plan applies them."""
    return Origin(
        operator=package.name,
        operator_version=package.operator.operator_version,
        instance=installed.instance,
        namespace=installed.namespace,
    )


async def _rendered(installation: Installation, order: TasksInput) -> dict[str, str | Reason]:
    """In a thread: the program that renders is waited for."""
    package = installation.package
    tasks = [task for task in package.operator.tasks if task.name in order.tasks]
    keys = {key for task in tasks for key in (*task.templates, task.parameter_template) if key}
    missing: dict[str, str | Reason] = {}
    for key in sorted(keys - set(package.templates)):
        try:
            package.template(key)
        except RefusedError as refused:
            missing[key] = refused.reasons[0].but(field="")
    place = StepPlace(order.plan, order.phase, order.step)
    known = sorted(keys - set(missing))
    return missing | await asyncio.to_thread(render_package, installation, known, place)
