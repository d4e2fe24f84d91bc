"""The objects that a plan of a package would apply and delete, rendered without a change."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.mechanics.secrets import SecretLookup
from temporal_plans.activities.packages.access import LoadPackage
from temporal_plans.activities.packages.instance_objects import InstanceObjects
from temporal_plans.activities.packages.preparation import instance_origin, step_context
from temporal_plans.activities.packages.secret_values import HiddenValues, secret_values
from temporal_plans.activities.packages.step_context import StepContext
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.parameters import boolean
from temporal_plans.domain.packages.plans import DEPLOY
from temporal_plans.domain.packages.tasks import AnyTask
from temporal_plans.domain.packages.tasks.apply import ApplyTask
from temporal_plans.domain.packages.tasks.delete import DeleteTask
from temporal_plans.domain.packages.tasks.dummy import DummyTask
from temporal_plans.domain.packages.tasks.toggle import ToggleTask
from temporal_plans.loading.packages.objects import read_objects
from temporal_plans.messages.packages import InstalledPackage, PackageRun, TasksInput

_Key = tuple[str, str, str, str]


@dataclass
class PlannedObjects:
    """``applied`` and ``deleted`` have manifests by key, in the order of the steps; an object is in
    one of them only, by its last task. ``unknown`` are objects whose kind the cluster does not have
    yet. ``problems`` and ``notes`` may have values of secrets."""

    applied: dict[_Key, Object] = field(default_factory=dict[_Key, Object])
    deleted: dict[_Key, Object] = field(default_factory=dict[_Key, Object])
    unknown: list[ObjectRef] = field(default_factory=list[ObjectRef])
    problems: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def add(self, manifests: Iterable[Object], *, deleted: bool) -> None:
        """Add the objects of a task."""
        into, others = self.applied, self.deleted
        if deleted:
            into, others = others, into
        for manifest in manifests:
            key = ObjectRef.of(manifest).key
            others.pop(key, None)
            into[key] = manifest


class Planning:
    """Renders plans in the worker of their cluster. ``hidden`` gets the values of secrets."""

    def __init__(
        self,
        client: Client,
        cluster: Cluster,
        load: LoadPackage,
        secrets: SecretLookup,
        hidden: HiddenValues,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._load = load
        self._secrets = secrets
        self._hidden = hidden

    async def objects(self, installed: InstalledPackage) -> InstanceObjects:
        """Return what acts on the objects of an installed package."""
        package = await self._load(installed.content)
        return InstanceObjects(self._cluster, instance_origin(installed, package))

    async def planned(self, installed: InstalledPackage, plan: str) -> PlannedObjects:
        """Return the objects of a plan, of ``deploy`` in a package without that plan. Raises
        ClusterError, and TaskProblem and RefusedError where nothing can be rendered."""
        package = await self._load(installed.content)
        values = await secret_values(installed.secrets, self._secrets)
        self._hidden.add_values(values.values())
        name = plan if plan in package.operator.plans else DEPLOY
        run, found = PackageRun(package=installed, uid=""), PlannedObjects()
        for phase, step in package.plan(name).steps():
            order = TasksInput(
                owner=f"service/{installed.service}",
                run=run,
                plan=name,
                phase=phase.name,
                step=step.name,
                tasks=step.tasks,
            )
            context = await step_context(order, self._load, values, self._cluster, self._client)
            for task in step.tasks:
                await self._add(found, package.task(task), context)
        self._hidden.add_objects(found.applied.values())
        return found

    async def _add(self, found: PlannedObjects, task: AnyTask, context: StepContext) -> None:
        try:
            deletes = _deletes(task, context)
            if deletes is None:
                found.notes.append(f"task {task.name}: what a {task.kind} makes can't be foreseen")
                return
            for key in task.templates:
                await self._render(found, key, context, deletes=deletes)
        except TaskProblem as problem:
            found.problems.append(f"task {task.name}: {problem}")

    async def _render(
        self, found: PlannedObjects, key: str, context: StepContext, *, deletes: bool
    ) -> None:
        read = read_objects(context.text(key))
        if read.faults:
            faults = "; ".join(str(fault.but(value=None)) for fault in read.faults[:5])
            raise TaskProblem(f"template {key} gives no objects: {faults}")
        for manifest in read.objects:
            made = await context.objects.enhanced([dict(manifest)], known_only=True)
            found.add(made, deleted=deletes)
            if not made and not deletes:
                found.unknown.append(ObjectRef.of(manifest))


def _deletes(task: AnyTask, context: StepContext) -> bool | None:
    """Return whether a task deletes its objects or applies them; None for another kind of task."""
    match task:
        case ApplyTask() | DummyTask():
            return False
        case DeleteTask():
            return True
        case ToggleTask(parameter=name):
            value = context.params.get(name)
            found = boolean(value) if isinstance(value, str) else None
            if found is None:
                raise TaskProblem(f"parameter {name} is not true or false")
            return not found
        case _:
            return None
