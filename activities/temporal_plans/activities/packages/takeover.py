"""The activity that says what a controller of packages left in a cluster."""

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

from temporalio import activity
from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import LIST_LIMIT, Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.packages.access import LoadPackage, UseCluster
from temporal_plans.activities.packages.errors import problem_of
from temporal_plans.activities.packages.preparation import step_context
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.dependencies import (
    KeptHash,
    dependencies,
    dependencies_hash,
)
from temporal_plans.domain.packages.enhancement import HERITAGE, INSTANCE_LABEL
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.left_instances import (
    Adoption,
    LeftPackage,
    applied_by_controller,
    left_instance,
    template_differences,
    written_hash,
)
from temporal_plans.domain.packages.manifests import part, text
from temporal_plans.domain.packages.package import API_VERSION, Package
from temporal_plans.domain.packages.plans import DEPLOY
from temporal_plans.domain.packages.tasks.apply import ApplyTask
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.addresses import service_id
from temporal_plans.messages.packages import (
    INSTANCES_LIMIT,
    OBJECTS_LIMIT,
    ClusterAnswer,
    ClusterQuestion,
    InstalledPackage,
    PackageRun,
    TasksInput,
)

_UID = "import"
_TEXTS_LIMIT = 200
"""Differences and notes that one answer has."""


class TakeoverActivities:
    """``use`` lends the cluster whose queue the worker serves; ``load`` gives packages."""

    def __init__(self, client: Client, use: UseCluster, load: LoadPackage) -> None:
        self._client = client
        self._use = use
        self._load = load

    @activity.defn
    async def ask_cluster(self, question: ClusterQuestion) -> ClusterAnswer:
        """Look at what is asked for; nothing is changed. It never fails: an error is a problem."""
        try:
            async with heartbeats(), self._use() as cluster:
                if question.package is not None:
                    adoption = await self._adoption(cluster, question.package)
                    return ClusterAnswer(adoption=adoption)
                if question.version:
                    return ClusterAnswer(package=await _left_package(cluster, question))
                return await _instances(cluster, question.namespace)
        except Exception as error:
            return ClusterAnswer(problem=shortened(str(problem_of(error))))

    async def _adoption(self, cluster: Cluster, package: InstalledPackage) -> Adoption:
        lives = await _objects(cluster, package)
        hashes = await _hashes(cluster, lives)
        run = PackageRun(package=package, uid=_UID, hashes=tuple(hashes))
        notes: list[str] = []
        loaded = await self._load(package.content)
        differences = [
            one
            for order in _steps(package, run, loaded)
            async for one in self._differences(cluster, order, notes)
        ]
        return Adoption(
            inventory=tuple(ObjectRef.of(live) for live in lives)[:OBJECTS_LIMIT],
            hashes=tuple(hashes),
            differences=tuple(dict.fromkeys(differences))[:_TEXTS_LIMIT],
            notes=tuple(notes)[:_TEXTS_LIMIT],
        )

    async def _differences(
        self, cluster: Cluster, order: TasksInput, notes: list[str]
    ) -> AsyncIterator[str]:
        """Yield what applying a step's objects would change in templates of pods."""
        try:
            context = await step_context(order, self._load, {}, cluster, self._client)
            for name in order.tasks:
                task = context.package.task(name)
                wanted = await context.rendered(task.templates)
                for made in await context.objects.tried(wanted):
                    live = await cluster.get(made)
                    if live is not None and (found := template_differences(live, made)):
                        yield found
        except (TaskProblem, ClusterError) as problem:
            notes.append(shortened(f"{order.phase}.{order.step} was not compared: {problem}"))


async def _instances(cluster: Cluster, namespace: str) -> ClusterAnswer:
    found = await cluster.find(API_VERSION, "Instance", namespace or None)
    if len(found) >= INSTANCES_LIMIT:
        problem = f"has {INSTANCES_LIMIT} or more instances: name a namespace with --kube-namespace"
        return ClusterAnswer(problem=f"the cluster {problem}")
    return ClusterAnswer(instances=tuple(map(left_instance, found)))


async def _left_package(cluster: Cluster, question: ClusterQuestion) -> LeftPackage:
    version = await _resource(cluster, "OperatorVersion", question.namespace, question.version)
    named = part(version, "spec", "operator")
    namespace = text(named, "namespace") or question.namespace
    operator = await _resource(cluster, "Operator", namespace, text(named, "name"))
    return LeftPackage(
        name=text(named, "name"), operator=operator.get("spec") or {}, version=version["spec"]
    )


async def _resource(cluster: Cluster, kind: str, namespace: str, name: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    found = await cluster.get({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata})
    if found is None:
        raise TaskProblem(f"the cluster has no {kind} {name!r} in the namespace {namespace}")
    return found


async def _objects(cluster: Cluster, package: InstalledPackage) -> list[Object]:
    """Return all objects that the controller applied for an instance; of Secrets the metadata
    matters only, and nothing else leaves the activity."""
    wanted = {**HERITAGE, INSTANCE_LABEL: package.instance}
    labels = ",".join(f"{key}={value}" for key, value in wanted.items())
    found = await gather_bounded(
        _listed(cluster, version, kind, package.namespace if namespaced else None, labels)
        for version, kind, namespaced in await cluster.kinds()
    )
    mine = [
        live
        for lives in found
        for live in lives
        if applied_by_controller(live, package.instance, package.namespace)
    ]
    unique = {(live["metadata"]["uid"]): live for live in mine}
    return list(unique.values())


async def _listed(
    cluster: Cluster, version: str, kind: str, namespace: str | None, labels: str
) -> list[Object]:
    """Return nothing of kinds that the worker's account may not list."""
    try:
        found = await cluster.find(version, kind, namespace, labels=labels, limit=LIST_LIMIT)
    except ClusterError as error:
        if error.status in (403, 405):
            return []
        raise
    return [{**live, "apiVersion": version, "kind": kind} for live in found]


async def _hashes(cluster: Cluster, lives: Iterable[Object]) -> list[KeptHash]:
    """Return what the controller wrote into templates of pods, beside what we compute of the same
    dependencies as they are now."""
    kept: list[KeptHash] = []
    for live in lives:
        written = written_hash(live)
        if written is not None:
            read = await gather_bounded(cluster.get(one.manifest) for one in dependencies(live))
            computed = dependencies_hash(read)
            kept.append(KeptHash(ref=ObjectRef.of(live), computed=computed, live=written))
    return kept


def _steps(package: InstalledPackage, run: PackageRun, loaded: Package) -> Iterator[TasksInput]:
    """Yield the steps of the plan ``deploy`` that apply objects."""
    for phase, step in loaded.plan(DEPLOY).steps():
        tasks = _applying(loaded, step.tasks)
        if tasks:
            yield TasksInput(
                owner=service_id(package.service),
                run=run,
                plan=DEPLOY,
                phase=phase.name,
                step=step.name,
                tasks=tasks,
            )


def _applying(loaded: Package, names: Sequence[str]) -> tuple[str, ...]:
    known = {task.name for task in loaded.operator.tasks if isinstance(task, ApplyTask)}
    return tuple(name for name in names if name in known)
