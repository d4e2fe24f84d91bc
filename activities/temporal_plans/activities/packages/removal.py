"""The activity that removes all objects of an installation from its cluster."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio import activity

from temporal_plans.activities.kubernetes.cluster import Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.packages.access import UseCluster
from temporal_plans.domain.packages.anchor import anchor_ref
from temporal_plans.domain.packages.enhancement import INSTANCE_LABEL
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import entries
from temporal_plans.domain.packages.removal import belongs_to, removal_stages, why_left
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.packages import (
    NAMED_LIMIT,
    InstalledPackage,
    RemovalResult,
    RemoveObjects,
    TasksOutcome,
)

_REASON_LIMIT = 2000


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
    """``use`` lends the cluster whose queue the worker serves."""

    def __init__(self, use: UseCluster, intervals: RemovalIntervals = RemovalIntervals()) -> None:
        self._use = use
        self._intervals = intervals

    @activity.defn
    async def remove_objects(self, order: RemoveObjects) -> RemovalResult:
        """Delete everything in the inventory, then, when it is gone, the claims if that is wanted,
        and the anchor. An object that has not the label of the instance any more stays.

        Answers when all is gone, and when the reason why not is another one. Never raises
        ClusterError: a deletion that the cluster refuses is to be tried again.
        """
        try:
            async with heartbeats(), self._use() as cluster:
                return await self._in_rounds(_Removal(cluster, order))
        except ClusterError as error:
            reason = shortened(str(error), _REASON_LIMIT)
            return RemovalResult(outcome=TasksOutcome.RETRY, reason=reason)

    async def _in_rounds(self, removal: "_Removal") -> RemovalResult:
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


@dataclass
class _Removal:
    """One call: what is gone is not looked at again."""

    cluster: Cluster
    order: RemoveObjects
    gone: set[ObjectRef] = field(default_factory=set[ObjectRef])
    foreign: dict[ObjectRef, None] = field(default_factory=dict[ObjectRef, None])

    @property
    def package(self) -> InstalledPackage:
        return self.order.package

    async def proceed(self) -> RemovalResult:
        """Delete what is due now, and return what is left."""
        try:
            anchor = await self.cluster.get(self._anchor.manifest)
            for stage in removal_stages(self.order.inventory):
                if left := await self._remove_all(stage, anchor):
                    return self._waiting(left)
            claims = await self._claims()
            if self.order.volumes and claims:
                if left := await self._remove_all(claims, anchor):
                    return self._waiting(left)
                claims = []
            if last := await self._remove_anchor(anchor):
                return self._waiting([last])
        except ClusterError as error:
            return self._result(TasksOutcome.RETRY, reason=str(error))
        return self._result(TasksOutcome.DONE, claims=claims)

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
            if not belongs_to(live, self.package.instance):
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
        found = await self.cluster.list(
            "v1", "PersistentVolumeClaim", self.package.namespace, labels=labels
        )
        named = {ref.key for ref in self.order.inventory}
        return [ref for one in found if (ref := ObjectRef.of(one)).key not in named]

    @property
    def _anchor(self) -> ObjectRef:
        return anchor_ref(self.package.instance, self.package.namespace)

    async def _remove_anchor(self, anchor: Object | None) -> _Left | None:
        if anchor is None:
            return None
        if not belongs_to(anchor, self.package.instance):
            self.foreign[self._anchor] = None
            return None
        await self._delete(self._anchor, anchor)
        live = await self.cluster.get(self._anchor.manifest)
        return _Left(self._anchor, why_left(live)) if live else None

    def _waiting(self, left: Sequence[_Left]) -> RemovalResult:
        """The first that the cluster refuses is the reason, else the first that is left."""
        refused = [one for one in left if one.refused]
        first, *_ = refused or left
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return self._result(
            TasksOutcome.RETRY if refused else TasksOutcome.WAITING,
            left=len(left),
            reason=f"{first.text}{more}",
            about=first.ref,
        )

    def _result(
        self,
        outcome: TasksOutcome,
        *,
        left: int = 0,
        reason: str = "",
        about: ObjectRef | None = None,
        claims: Sequence[ObjectRef] = (),
    ) -> RemovalResult:
        return RemovalResult(
            outcome=outcome,
            left=left,
            reason=shortened(reason, _REASON_LIMIT),
            about=about,
            foreign=tuple(self.foreign)[:NAMED_LIMIT],
            claims=tuple(claims[:NAMED_LIMIT]),
        )
