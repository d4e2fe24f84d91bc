"""The objects of an instance in its cluster: claimed, applied with their anchor, and deleted."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from temporal_plans.activities.kubernetes.cluster import FIELD_MANAGER, Cluster, Manifest, Object
from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.activities.mechanics.concurrency import gather_bounded
from temporal_plans.activities.packages.cluster_objects import cluster_objects
from temporal_plans.activities.packages.live_objects import Key, live_metadata
from temporal_plans.activities.packages.replaced_jobs import apply_job, is_job
from temporal_plans.activities.packages.task_problem import TaskProblem
from temporal_plans.domain.packages.anchor import (
    anchor,
    noting_installation,
    owned,
    recording_installation,
)
from temporal_plans.domain.packages.belonging import controlled, foreign
from temporal_plans.domain.packages.dependencies import KeptHash, dependencies, with_hash
from temporal_plans.domain.packages.enhancement import Origin, enhanced
from temporal_plans.domain.packages.field_managers import migrated_managers
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import (
    group_kind,
    name_of,
    part,
    pod_template_path,
)
from temporal_plans.domain.packages.object_names import object_name_fault
from temporal_plans.domain.packages.removed_versions import raised
from temporal_plans.domain.values.refusal import Reason

_KIND_LOOKS, _KIND_INTERVAL = 3, 0.7
"""How often a kind that is unknown is looked for again, and seconds before each."""

_log = logging.getLogger(__name__)


class InstanceObjects:
    """What a step does with objects of one instance. All methods raise ClusterError, and
    TaskProblem where the objects themselves are the problem. ``hashes`` are those of a former
    controller."""

    def __init__(self, cluster: Cluster, origin: Origin, hashes: Sequence[KeptHash] = ()) -> None:
        self._cluster = cluster
        self._origin = origin
        self._hashes = hashes
        self._live: dict[Key, Object | None] = {}
        self._anchor: Object | None = None
        self._found_anchor: Object | None = None
        self._installation = ""

    @property
    def anchor_ref(self) -> ObjectRef:
        """The identity of the instance's anchor."""
        return ObjectRef.of(anchor(self._origin))

    async def unrecorded(self, installation: str) -> Sequence[ObjectRef]:
        """Return the cluster-scoped objects of the instance, unless the installation has recorded
        them before: those of an Instance that was terminated are in no inventory. Call
        ``note_recorded`` when they are recorded; a retry before that finds them again."""
        if not installation:  # the run of an earlier version
            return ()
        self._found_anchor = await self._cluster.get(anchor(self._origin))
        if self._found_anchor and recording_installation(self._found_anchor) == installation:
            return ()
        self._installation = installation
        origin = self._origin
        return await cluster_objects(self._cluster, origin.instance, origin.namespace)

    async def note_recorded(self) -> None:
        """Note at the anchor, if there is one, that the installation has recorded all objects."""
        live = self._found_anchor
        if self._installation and live is not None:
            self._check_anchor(live)
            change = noting_installation(self._installation)
            self._found_anchor = await self._cluster.merge(live, change)
            self._installation = ""

    async def enhanced(
        self, manifests: Iterable[Manifest], *, known_only: bool = False
    ) -> list[Object]:
        """Return rendered objects as they are to be applied, but for their owner and their hashes.
        With ``known_only`` those of kinds that the cluster does not have are left out."""
        found: list[Object] = []
        for manifest in manifests:
            made = raised(manifest)
            if made["apiVersion"] != manifest["apiVersion"]:
                _log.warning(
                    "%s in %s was removed from Kubernetes; it is applied in %s (package %s)",
                    *(made["kind"], manifest["apiVersion"], made["apiVersion"]),
                    self._origin.operator,
                )
            if problem := _problem(made):
                raise TaskProblem(problem)
            namespaced = await self._cluster.namespaced(made)
            if namespaced is None and not known_only:
                namespaced = await self._soon_namespaced(made)
            if namespaced is not None:
                found.append(enhanced(made, self._origin, namespaced=namespaced))
        return found

    async def _soon_namespaced(self, manifest: Manifest) -> bool:
        """A kind is served a moment after its definition was established. Raises TaskProblem."""
        for _ in range(_KIND_LOOKS):
            await asyncio.sleep(_KIND_INTERVAL)
            namespaced = await self._cluster.namespaced(manifest)
            if namespaced is not None:
                return namespaced
        raise TaskProblem(
            f"{manifest['kind']} {name_of(manifest)}: the cluster has no such kind in "
            f"{manifest['apiVersion']}; apply its CustomResourceDefinition in an earlier step, or "
            "install what brings it",
        )

    async def claim(self, manifests: Sequence[Manifest]) -> None:
        """Refuse objects that are there already and belong to another (TaskProblem)."""
        lives = await live_metadata(self._cluster, manifests)
        for manifest in manifests:
            ref = ObjectRef.of(manifest)
            live = lives[ref.key]
            taken = self._foreign(live) if live is not None else None
            if reason := controlled(manifest) or taken:
                raise TaskProblem(str(reason.but(field=str(ref))), about=ref)
            self._live[ref.key] = live

    async def apply(self, manifests: Sequence[Manifest]) -> list[Object]:
        """Apply claimed objects in their order, and return them as they are then. The first that is
        refused ends it: those before it stay applied."""
        owner = await self._owner()
        contents = await self._contents(manifests)
        lives: list[Object] = []
        for run in _runs(manifests):
            wanted = [owned(with_hash(manifest, contents, self._hashes), owner) for manifest in run]
            found = await gather_bounded(self._attempted(manifest) for manifest in wanted)
            for live in found:
                if isinstance(live, Exception):
                    raise live
                lives.append(live)
        return lives

    async def as_applied(self, manifests: Sequence[Manifest]) -> list[Object]:
        """Return objects as ``apply`` would send them; without an owner while there is no anchor.
        Nothing is changed."""
        anchored = await self._cluster.get(anchor(self._origin))
        contents = await self._contents(manifests)
        made = [with_hash(manifest, contents, self._hashes) for manifest in manifests]
        return [owned(one, anchored) if anchored else one for one in made]

    async def tried(self, manifests: Sequence[Manifest]) -> list[Object]:
        """Return what applying would make of objects with templates of pods, but of Jobs. Nothing
        is changed."""
        wanted = [
            manifest
            for manifest in await self.as_applied(manifests)
            if pod_template_path(manifest) and not is_job(manifest)
        ]
        return [await self._cluster.apply(manifest, dry_run=True) for manifest in wanted]

    async def delete(self, manifests: Sequence[Manifest]) -> None:
        """Order the deletion of claimed objects, and of what they own before them."""
        for manifest in manifests:
            await self._cluster.delete(manifest)

    async def _owner(self) -> Object:
        """Return the anchor, which is made when it is not there."""
        if self._anchor is None:
            wanted = anchor(self._origin)
            live = self._found_anchor or await self._cluster.get(wanted)
            if live is not None:
                self._check_anchor(live)
            self._anchor = live or await self._cluster.apply(wanted)
        return self._anchor

    def _check_anchor(self, live: Object) -> None:
        ref = self.anchor_ref
        if reason := self._foreign(live):
            raise TaskProblem(str(reason.but(field=str(ref))), about=ref)
        if part(live, "metadata").get("deletionTimestamp"):
            problem = f"{ref}: it is being deleted, and with it all objects of the instance"
            raise TaskProblem(problem, passing=True, about=ref)

    def _foreign(self, live: Object) -> Reason | None:
        return foreign(live, self._origin.instance, self._origin.namespace)

    async def _contents(self, manifests: Sequence[Manifest]) -> dict[Key, Manifest | None]:
        """Return what pods of the objects read: of the objects themselves, else of the cluster."""
        known: dict[Key, Manifest | None] = {
            ObjectRef.of(manifest).key: manifest for manifest in manifests
        }
        wanted = {one.key: one for manifest in manifests for one in dependencies(manifest)}
        missing = [one for key, one in wanted.items() if key not in known]
        lives = await gather_bounded(self._cluster.get(one.manifest) for one in missing)
        return known | {one.key: live for one, live in zip(missing, lives, strict=True)}

    async def _attempted(self, manifest: Object) -> Object | Exception:
        """Nothing may still be under way when the first refusal is reported."""
        try:
            return await self._apply(manifest)
        except Exception as error:
            return error

    async def _apply(self, manifest: Object) -> Object:
        live = self._live.get(ObjectRef.of(manifest).key)
        try:
            if live is not None:
                await self._migrate(live)
            if is_job(manifest):
                return await apply_job(self._cluster, manifest)
            return await self._cluster.apply(manifest)
        except ClusterError as error:
            error.about = ObjectRef.of(manifest)
            raise

    async def _migrate(self, live: Object) -> None:
        managers = migrated_managers(live, FIELD_MANAGER)
        if managers is not None:
            await self._cluster.replace_managers(live, managers)


_WITHOUT_EFFECT = frozenset({("", "ConfigMap"), ("", "Secret")})
"""Kinds of objects that do nothing and refer to nothing: among them no order can matter."""


def _runs(manifests: Sequence[Manifest]) -> Iterator[Sequence[Manifest]]:
    """Yield the objects in their order, those together that may be applied together."""
    for together, run in groupby(manifests, lambda one: group_kind(one) in _WITHOUT_EFFECT):
        members = list(run)
        yield from [members] if together else ([one] for one in members)


def _problem(manifest: Manifest) -> str | None:
    """Return why a rendered object can't be one in a cluster; None when it can."""
    kind = manifest["kind"]
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return f"{kind} without metadata: write metadata with a name"
    if not name_of(manifest):
        return f"{kind} without a name: write metadata.name, as a text"
    if fault := object_name_fault(name_of(manifest)):
        return f"{kind}: {fault}"
    long = [text for text in (manifest["apiVersion"], kind, name_of(manifest)) if len(text) > 300]
    return f"{kind}: a name of {len(long[0])} characters" if long else None
