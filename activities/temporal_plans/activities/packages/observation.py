"""The activity that looks at the objects of an instance in its cluster, without a change."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from temporalio import activity
from temporalio.client import Client

from temporal_plans.activities.kubernetes.cluster import FIELD_MANAGER, Cluster, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.secrets import SecretLookup
from temporal_plans.activities.packages.access import UseCluster
from temporal_plans.activities.packages.object_details import details
from temporal_plans.activities.packages.recorded_objects import recorded_objects
from temporal_plans.activities.packages.secret_values import HiddenValues, secret_values
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.belonging import foreign
from temporal_plans.domain.packages.drift import changes_of_others
from temporal_plans.domain.packages.health import health
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import part
from temporal_plans.domain.packages.object_report import (
    REASON_LIMIT,
    ObjectReport,
    ObjectState,
)
from temporal_plans.domain.packages.removal import why_left
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.packages import LOOK_LIMIT, LookAtObjects, ObjectsReport

_TIMEOUT = 30.0
"""Seconds after which no further object is looked at."""

_DETAILED_LIMIT = 20
"""Objects of a report whose pods and events are looked at."""

_MISSING = (
    "it is not in the cluster: it could not be applied, or its time to live or another client has "
    "deleted it"
)


class ObservationActivities:
    """``client`` reaches the Instance, ``use`` lends the cluster whose queue the worker serves,
    ``secrets`` looks up secret parameters, whose values no text may have."""

    def __init__(self, client: Client, use: UseCluster, secrets: SecretLookup) -> None:
        self._client = client
        self._use = use
        self._secrets = secrets

    @activity.defn
    async def look_at_objects(self, order: LookAtObjects) -> ObjectsReport:
        """Return how objects of an instance are, in pages. It never fails: what keeps it from
        looking is the report's problem."""
        try:
            async with heartbeats(), self._use() as cluster:
                refs = order.objects or await recorded_objects(self._client, order.owner)
                report = await _Look(cluster, order, refs).report()
            return await self._without_secrets(order, report)
        except (ClusterError, TaskProblem) as error:
            return ObjectsReport(problem=shortened(str(error)))

    async def _without_secrets(self, order: LookAtObjects, report: ObjectsReport) -> ObjectsReport:
        if not order.package.secrets:
            return report
        hidden = HiddenValues()
        hidden.add_values((await secret_values(order.package.secrets, self._secrets)).values())
        return report.but(objects=tuple(_hidden(one, hidden) for one in report.objects))


def _hidden(report: ObjectReport, hidden: HiddenValues) -> ObjectReport:
    return report.but(
        reason=hidden.hide(report.reason),
        pods=tuple(map(hidden.hide, report.pods)),
        events=tuple(map(hidden.hide, report.events)),
    )


@dataclass
class _Look:
    """One call. ``refs`` are all objects; those before the order's first one are left out."""

    cluster: Cluster
    order: LookAtObjects
    refs: Sequence[ObjectRef]
    found: list[ObjectReport] = field(default_factory=list[ObjectReport])
    counts: Counter[ObjectState] = field(default_factory=Counter[ObjectState])
    changed: int = 0
    detailed: int = 0

    async def report(self) -> ObjectsReport:
        loop, first = asyncio.get_running_loop(), self.order.first
        at, end = first, loop.time() + _TIMEOUT
        while at < len(self.refs):
            page = self.refs[at : at + LOOK_LIMIT]
            await self._look_at(page)
            at += len(page)
            if not self.order.notable or loop.time() >= end:
                break
        return ObjectsReport(
            total=len(self.refs),
            looked=max(at - first, 0),
            following=at if at < len(self.refs) else None,
            counts=dict(self.counts),
            changed=self.changed,
            objects=tuple(self.found[:LOOK_LIMIT]),
        )

    async def _look_at(self, page: Sequence[ObjectRef]) -> None:
        for report in await gather_bounded(self._one(ref) for ref in page):
            self.counts[report.state] += 1
            self.changed += bool(report.changes)
            if report.notable or not self.order.notable:
                self.found.append(report)

    async def _one(self, ref: ObjectRef) -> ObjectReport:
        try:
            live = await self.cluster.get(ref.manifest)
        except ClusterError as error:
            if error.passing:
                raise
            return _report(ref, ObjectState.UNKNOWN, str(error))
        if live is None:
            return _report(ref, ObjectState.MISSING, await self._why_missing(ref))
        package = self.order.package
        if reason := foreign(live, package.instance, package.namespace):
            return _report(ref, ObjectState.FOREIGN, str(reason))
        judged = health(live)
        why = judged.reason
        if part(live, "metadata").get("deletionTimestamp"):
            why = await self._why_namespace(ref) or why
        report = _report(ref, ObjectState(judged.state), why).but(
            changes=changes_of_others(live, FIELD_MANAGER)
        )
        if report.state is ObjectState.HEALTHY or self.detailed >= _DETAILED_LIMIT:
            return report
        self.detailed += 1
        return await self._detailed(report, live)

    async def _why_missing(self, ref: ObjectRef) -> str:
        """Its kind or its namespace may have been deleted, and it with them."""
        if await self.cluster.namespaced(ref.manifest) is None:
            return f"the cluster has no such kind in {ref.api_version}"
        return await self._why_namespace(ref) or _MISSING

    async def _why_namespace(self, ref: ObjectRef) -> str:
        """Return what is wrong with the namespace of an object; empty when nothing is."""
        if not ref.namespace:
            return ""
        wanted = ObjectRef(api_version="v1", kind="Namespace", name=ref.namespace)
        try:
            live = await self.cluster.get(wanted.manifest)
        except ClusterError as error:
            if error.passing:
                raise
            return ""  # the worker may not read it
        if live is None:
            return f'namespaces "{ref.namespace}" not found'
        if part(live, "metadata").get("deletionTimestamp"):
            return f"Namespace {ref.namespace} {why_left(live)}"
        return ""

    async def _detailed(self, report: ObjectReport, live: Object) -> ObjectReport:
        """Add what pods and events say, as far as the cluster lets the worker read them."""
        try:
            found = await details(self.cluster, live)
        except ClusterError as error:
            if error.passing:
                raise
            return report.but(events=(shortened(f"not readable: {error}", 300),))
        return report.but(pods=found.pods, events=found.events)


def _report(ref: ObjectRef, state: ObjectState, reason: str) -> ObjectReport:
    return ObjectReport(ref=ref, state=state, reason=shortened(reason, REASON_LIMIT))
