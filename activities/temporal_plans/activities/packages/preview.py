"""The activity that tries what a plan would change of the objects in a cluster: dry runs only."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from temporalio import activity
from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.secrets import SecretLookup
from temporal_plans.activities.packages.access import LoadPackage, UseCluster
from temporal_plans.activities.packages.planned_objects import PlannedObjects, Planning
from temporal_plans.activities.packages.replaced_jobs import is_job
from temporal_plans.activities.packages.secret_values import HiddenValues
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.belonging import controlled, foreign
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.object_preview import (
    PROBLEM_LIMIT,
    ObjectPreview,
    PreviewAction,
    compared,
)
from temporal_plans.domain.values.refusal import RefusedError
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.packages import (
    PREVIEW_FIELDS_LIMIT,
    PREVIEW_LIMIT,
    ObjectsPreview,
    PreviewObjects,
)

_NOTES_LIMIT = 50
_NO_KIND = "its kind is not in the cluster yet: it was not tried"
_NO_NAMESPACE = "its namespace is not there yet: it was not tried"
_LEFT = "no template of the plan renders it any more: it stays until the uninstall"
_REPLACED = "it can't be changed: a Job that has ended is deleted and made again"


class PreviewActivities:
    """``client`` is the one of the worker, ``load`` has the packages, ``use`` lends the cluster
    whose queue the worker serves, and ``secrets`` looks up secret parameters."""

    def __init__(
        self, client: Client, load: LoadPackage, use: UseCluster, secrets: SecretLookup
    ) -> None:
        self._client = client
        self._load = load
        self._use = use
        self._secrets = secrets

    @activity.defn
    async def preview_objects(self, order: PreviewObjects) -> ObjectsPreview:
        """Return what a plan would change, object by object. Nothing is changed, and no value of a
        secret is in the answer. It never fails: what keeps it from trying is its problem."""
        hidden = HiddenValues()
        try:
            async with heartbeats(), self._use() as cluster:
                planning = Planning(self._client, cluster, self._load, self._secrets, hidden)
                return await _Preview(cluster, planning, hidden, order).made()
        except (ClusterError, TaskProblem, RefusedError) as error:
            return ObjectsPreview(problem=shortened(hidden.hide(str(error))))


@dataclass(frozen=True)
class _Preview:
    """One call."""

    cluster: Cluster
    planning: Planning
    hidden: HiddenValues
    order: PreviewObjects

    async def made(self) -> ObjectsPreview:
        after, plan = self.order.after, self.order.plan
        planned = await self.planning.planned(after, plan)
        left = await self._left(planned)
        objects = await self.planning.objects(after)
        manifests = await objects.as_applied(list(planned.applied.values()))
        placed = await self._has_namespace(after.namespace)
        found = [
            *await gather_bounded(self._applied(one, placed=placed) for one in manifests),
            *[_preview(ref, PreviewAction.ADDED, _NO_KIND) for ref in planned.unknown],
            *await self._existing(list(planned.deleted.values()), PreviewAction.DELETED),
            *await self._existing(left, PreviewAction.LEFT, _LEFT),
        ]
        return ObjectsPreview(
            objects=_bounded(found),
            counts=dict(Counter(one.action for one in found)),
            notes=self._texts(planned.notes),
            problems=self._texts(planned.problems),
        )

    def _texts(self, texts: Sequence[str]) -> tuple[str, ...]:
        shown = [shortened(self.hidden.hide(text), PROBLEM_LIMIT) for text in texts]
        return tuple(shown[:_NOTES_LIMIT])

    async def _left(self, planned: PlannedObjects) -> list[Object]:
        """Return the objects that the plan rendered before, and does not any more."""
        before = self.order.before
        if before is None or planned.problems:
            return []
        earlier = await self.planning.planned(before, self.order.plan)
        known = {*planned.applied, *planned.deleted, *(ref.key for ref in planned.unknown)}
        return [one for key, one in earlier.applied.items() if key not in known]

    async def _has_namespace(self, name: str) -> bool:
        namespace = ObjectRef(api_version="v1", kind="Namespace", name=name)
        return await self.cluster.get(namespace.manifest) is not None

    async def _applied(self, manifest: Object, *, placed: bool) -> ObjectPreview:
        ref = ObjectRef.of(manifest)
        if ref.namespace and not placed:
            return _preview(ref, PreviewAction.ADDED, _NO_NAMESPACE)
        try:
            live = await self.cluster.get(manifest)
            after = self.order.after
            taken = foreign(live, after.instance, after.namespace) if live is not None else None
            if reason := controlled(manifest) or taken:
                return _preview(ref, PreviewAction.REFUSED, str(reason))
            answer = await self.cluster.apply(manifest, dry_run=True)
        except ClusterError as error:
            return self._refused(ref, manifest, error)
        if live is None:
            return _preview(ref, PreviewAction.ADDED)
        self.hidden.add_objects([live])
        return compared(ref, live, answer, self.hidden.hide)

    def _refused(self, ref: ObjectRef, manifest: Object, error: ClusterError) -> ObjectPreview:
        if error.status is None and error.passing:
            raise error  # the cluster does not answer
        if error.immutable and is_job(manifest):
            return _preview(ref, PreviewAction.CHANGED, _REPLACED)
        return _preview(ref, PreviewAction.REFUSED, self.hidden.hide(str(error)))

    async def _existing(
        self, manifests: Sequence[Object], action: PreviewAction, problem: str = ""
    ) -> list[ObjectPreview]:
        """Return those of the objects that are in the cluster."""
        lives = await gather_bounded(self.cluster.get(one) for one in manifests)
        return [
            _preview(ObjectRef.of(one), action, problem)
            for one, live in zip(manifests, lives, strict=True)
            if live is not None
        ]


def _preview(ref: ObjectRef, action: PreviewAction, problem: str = "") -> ObjectPreview:
    return ObjectPreview(ref=ref, action=action, problem=shortened(problem, PROBLEM_LIMIT))


def _bounded(found: Sequence[ObjectPreview]) -> tuple[ObjectPreview, ...]:
    """Return the objects as far as they fit, in their order; those that change have precedence."""
    if len(found) > PREVIEW_LIMIT:
        found = sorted(found, key=lambda one: one.action is PreviewAction.UNCHANGED)
    kept: list[ObjectPreview] = []
    left = PREVIEW_FIELDS_LIMIT
    for one in found[:PREVIEW_LIMIT]:
        fields = one.fields[:left]
        left -= len(fields)
        kept.append(one.but(fields=fields, more=one.more + len(one.fields) - len(fields)))
    return tuple(kept)
