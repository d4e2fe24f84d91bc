"""The activity that removes all objects of an installation from its cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.packages.access import UseCluster
from temporal_plans.activities.packages.cluster_objects import cluster_objects
from temporal_plans.activities.packages.recorded_objects import recorded_objects
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.anchor import anchor_ref
from temporal_plans.domain.packages.enhancement import INSTANCE_LABEL
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import entries
from temporal_plans.domain.packages.removal import belongs_to, removal_stages, why_left
from temporal_plans.domain.values.text import listed, shortened
from temporal_plans.messages.packages import (
    InstalledPackage,
    RemovalInput,
    TasksOutcome,
    TasksResult,
)

_NAMED_LIMIT = 10
"""Objects that stay and are named."""


@dataclass(frozen=True)
class RemovalIntervals:
    """The times of one call, in seconds. The call answers after ``report_delay`` when the reason is
    not the one that is known, and in any case after ``timeout``. It looks again after
    ``first_pause``, doubled up to ``pause_limit``."""

    report_delay: float = 3.0
    timeout: float = 60.0
    first_pause: float = 0.1
    pause_limit: float = 3.0


@dataclass(frozen=True)
class _Left:
    """An object that is still there, and why. ``refused`` is whether the cluster refused."""

    ref: ObjectRef
    reason: str
    refused: bool = False

    @property
    def text(self) -> str:
        return self.reason if self.refused else f"{self.ref} {self.reason}"


class RemovalActivities:
    """``client`` reaches the Instance; ``use`` lends the cluster whose queue the worker serves."""

    def __init__(
        self,
        client: Client,
        use: UseCluster,
        intervals: RemovalIntervals = RemovalIntervals(),
    ) -> None:
        self._client = client
        self._use = use
        self._intervals = intervals

    @activity.defn
    async def remove_instance(self, order: RemovalInput) -> TasksResult:
        """Delete everything in the inventory, and what else of the instance is cluster-scoped;
        when it is gone, the claims if that is wanted, and the anchor. An object that has not the
        label of the instance any more stays.

        Answers when all is gone, with what stays as the reason; and when the reason why not is
        another one. It never fails, and its result is never FAILED: the object of a deletion that
        the cluster refuses is not wrong, so it is to be tried again.
        """
        try:
            async with heartbeats(), self._use() as cluster:
                inventory = await _inventory(self._client, cluster, order)
                return await self._in_rounds(_Removal(cluster, order, inventory))
        except (ClusterError, TaskProblem) as error:
            return _result(TasksOutcome.RETRY, str(error))

    async def _in_rounds(self, removal: "_Removal") -> TasksResult:
        loop, pause = asyncio.get_running_loop(), self._intervals.first_pause
        begun = loop.time()
        while True:
            result = await removal.proceed()
            known = result.reason == removal.order.shown
            patience = self._intervals.timeout if known else self._intervals.report_delay
            if result.outcome is TasksOutcome.DONE or loop.time() - begun >= patience:
                return result
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._intervals.pause_limit)


async def _inventory(client: Client, cluster: Cluster, order: RemovalInput) -> Sequence[ObjectRef]:
    """Return the objects that are recorded, after the cluster-scoped ones that are not: those of an
    Instance that was terminated, whose successor may not have looked for them."""
    recorded = await recorded_objects(client, order.owner)
    known = {ref.key for ref in recorded}
    package = order.package
    found = await cluster_objects(cluster, package.instance, package.namespace)
    return (*(ref for ref in found if ref.key not in known), *recorded)


@dataclass
class _Removal:
    """One call: what is gone is not looked at again."""

    cluster: Cluster
    order: RemovalInput
    inventory: Sequence[ObjectRef]
    gone: set[ObjectRef] = field(default_factory=set[ObjectRef])
    foreign: dict[ObjectRef, None] = field(default_factory=dict[ObjectRef, None])

    @property
    def package(self) -> InstalledPackage:
        return self.order.package

    async def proceed(self) -> TasksResult:
        """Delete what is due now, and return what is left."""
        try:
            anchor = await self.cluster.get(self._anchor.manifest)
            others = [ref for ref in self.inventory if ref.key != self._anchor.key]
            for stage in removal_stages(others):
                if left := await self._remove_all(stage, anchor):
                    return _waiting(left)
            claims = await self._claims()
            if self.order.volumes and claims:
                if left := await self._remove_all(claims, anchor):
                    return _waiting(left)
                claims = []
            if last := await self._remove_anchor(anchor):
                return _waiting([last])
        except ClusterError as error:
            return _result(TasksOutcome.RETRY, str(error))
        return _result(TasksOutcome.DONE, self._what_stays(claims))

    async def _remove_all(self, refs: Sequence[ObjectRef], anchor: Object | None) -> list[_Left]:
        due = [ref for ref in refs if ref not in self.gone and ref not in self.foreign]
        found = await gather_bounded(self._remove(ref, anchor) for ref in due)
        return [left for left in found if left]

    async def _remove(self, ref: ObjectRef, anchor: Object | None) -> _Left | None:
        """Order the deletion of an object unless that has been done."""
        try:
            live = await self.cluster.get(ref.manifest)
            if live is None:
                self.gone.add(ref)
                return None
            if not belongs_to(live, self.package.instance, self.package.namespace):
                await self._release(live, anchor)
                self.foreign[ref] = None
                return None
            return await self._delete(ref, live)
        except ClusterError as error:
            return _Left(ref, str(error), refused=True)

    async def _delete(self, ref: ObjectRef, live: Object) -> _Left:
        if not live["metadata"].get("deletionTimestamp"):
            await self.cluster.delete(ref.manifest, uid=live["metadata"]["uid"])
        return _Left(ref, why_left(live))

    async def _release(self, live: Object, anchor: Object | None) -> None:
        """Without the anchor as its owner the object stays when the anchor goes."""
        metadata = live["metadata"]
        owners = list(entries(metadata, "ownerReferences"))
        others = [one for one in owners if not anchor or one["uid"] != anchor["metadata"]["uid"]]
        if len(others) < len(owners):
            version = metadata["resourceVersion"]
            change = {"metadata": {"ownerReferences": others, "resourceVersion": version}}
            await self.cluster.merge(live, change)

    async def _claims(self) -> list[ObjectRef]:
        """Return the claims that StatefulSets of the instance made: nothing owns them."""
        labels = f"{INSTANCE_LABEL}={self.package.instance}"
        found = await self.cluster.find(
            "v1", "PersistentVolumeClaim", self.package.namespace, labels=labels
        )
        named = {ref.key for ref in self.inventory}
        return [ref for one in found if (ref := ObjectRef.of(one)).key not in named]

    @property
    def _anchor(self) -> ObjectRef:
        return anchor_ref(self.package.instance, self.package.namespace)

    async def _remove_anchor(self, anchor: Object | None) -> _Left | None:
        if anchor is None:
            return None
        if not belongs_to(anchor, self.package.instance, self.package.namespace):
            self.foreign[self._anchor] = None
            return None
        await self._delete(self._anchor, anchor)
        live = await self.cluster.get(self._anchor.manifest)
        return _Left(self._anchor, why_left(live)) if live else None

    def _what_stays(self, claims: Sequence[ObjectRef]) -> str:
        kept = (
            ("these volumes stay; delete their claims if they are not needed", claims),
            ("these objects belong to another owner now and stay", tuple(self.foreign)),
        )
        texts = [
            f"{what}: {listed([str(ref) for ref in refs], _NAMED_LIMIT)}"
            for what, refs in kept
            if refs
        ]
        return "; ".join(texts)


def _waiting(left: Sequence[_Left]) -> TasksResult:
    """The first that the cluster refuses is the reason, else the first that is left."""
    refused = [one for one in left if one.refused]
    first, *_ = refused or left
    more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
    outcome = TasksOutcome.RETRY if refused else TasksOutcome.WAITING
    return _result(outcome, f"{first.text}{more}", first.ref)


def _result(outcome: TasksOutcome, reason: str, about: ObjectRef | None = None) -> TasksResult:
    return TasksResult(outcome=outcome, reason=shortened(reason), about=about)
