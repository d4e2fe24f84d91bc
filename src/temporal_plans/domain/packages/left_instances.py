"""What a controller left in a cluster: its Instances, and the packages that they are of.

The resources are wire data: they were written by another program, and any part may be missing.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, cast

from pydantic import AwareDatetime, Field

from temporal_plans.domain.packages.dependencies import HASH_KEY, KeptHash, dependencies
from temporal_plans.domain.packages.enhancement import controller_of
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.manifests import (
    Manifest,
    entries,
    group_kind,
    name_of,
    part,
    pod_template_path,
    text,
)
from temporal_plans.domain.packages.package import API_VERSION
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import shortened

NEVER_RUN = "NEVER_RUN"
LAST_APPLIED = "kudo.dev/last-applied-configuration"
_GROUP = API_VERSION.partition("/")[0]
_STATUSES: Mapping[str, Status] = {"COMPLETE": Status.COMPLETE, "FATAL_ERROR": Status.ERROR}


class LeftRun(CompactValue):
    """The newest run of a plan, with its status in the controller's words; ``at`` is the time of
    its last change."""

    plan: str = Field(max_length=1000)
    uid: str = Field(default="", max_length=200)
    status: str = Field(default="", max_length=100)
    at: AwareDatetime | None = None

    @property
    def ours(self) -> Status:
        """Its status in our words. Nothing continues a run that was not over: it reads ERROR."""
        return _STATUSES.get(self.status, Status.ERROR)

    @property
    def is_over(self) -> bool:
        return self.status in _STATUSES


class LeftInstance(CompressibleValue):
    """An Instance. ``version`` is the name of its OperatorVersion, in ``version_namespace``;
    ``runs`` are those of plans that ever ran; ``deleting``: its deletion is ordered."""

    name: str = Field(max_length=300)
    namespace: str = Field(max_length=300)
    version: str = Field(default="", max_length=300)
    version_namespace: str = Field(default="", max_length=300)
    given: dict[str, str] = Field(default={}, max_length=2_000)
    runs: tuple[LeftRun, ...] = Field(default=(), max_length=2_000)
    deleting: bool = False

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class LeftPackage(CompressibleValue):
    """The ``spec`` of an Operator and of one of its OperatorVersions, with the operator's name."""

    name: str = Field(max_length=300)
    operator: dict[str, Any] = {}
    version: dict[str, Any] = {}


class Adoption(CompressibleValue):
    """What taking over an instance begins with. ``differences`` say which templates of pods the
    first apply would change, ``notes`` what could not be found out."""

    inventory: tuple[ObjectRef, ...] = ()
    hashes: tuple[KeptHash, ...] = ()
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def left_instance(found: Manifest) -> LeftInstance:
    """Return an Instance as it is in the cluster. Raises ValueError for one without a name."""
    metadata, spec = part(found, "metadata"), part(found, "spec")
    reference = part(spec, "operatorVersion")
    plans = part(found, "status", "planStatus")
    return LeftInstance(
        name=name_of(found),
        namespace=text(metadata, "namespace"),
        version=text(reference, "name"),
        version_namespace=text(reference, "namespace") or text(metadata, "namespace"),
        given={key: str(value) for key, value in part(spec, "parameters").items()},
        runs=tuple(_runs(plans)),
        deleting=bool(metadata.get("deletionTimestamp")),
    )


def _runs(plans: Manifest) -> Iterator[LeftRun]:
    for name in plans:
        plan = part(plans, name)
        status = text(plan, "status")
        if status and status != NEVER_RUN:
            at = _time(text(plan, "lastUpdatedTimestamp"))
            yield LeftRun(plan=name, uid=text(plan, "uid"), status=status, at=at)


def _time(written: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def applied_by_controller(live: Manifest, instance: str, namespace: str) -> bool:
    """Return whether a controller applied an object for an instance. Labels alone are no sign: pods
    and claims have those of the template that they were made of."""
    found = text(part(live, "metadata"), "namespace")
    if group_kind(live)[0] == _GROUP or found not in ("", namespace):
        return False
    controller = controller_of(live)
    if controller is not None:
        version, kind = text(controller, "apiVersion"), text(controller, "kind")
        named = version.partition("/")[0], kind, text(controller, "name")
        return named == (_GROUP, "Instance", instance)
    return LAST_APPLIED in part(live, "metadata", "annotations")


def written_hash(live: Manifest) -> str | None:
    """Return the hash that a controller wrote into the template of an object's pods, empty when it
    wrote none; None for an object whose pods read nothing."""
    if not dependencies(live):
        return None
    return text(part(live, *pod_template_path(live), "metadata", "annotations"), HASH_KEY)


def template_differences(live: Manifest, wanted: Manifest) -> str:
    """Return which fields of the template of an object's pods differ, in words without their
    values; empty when none does."""
    path = pod_template_path(live)
    fields = sorted(_differing(part(live, *path), part(wanted, *path), ".".join(path)))
    if not fields:
        return ""
    return shortened(f"{ObjectRef.of(live)}: {', '.join(fields)}", 1000)


def _differing(old: object, new: object, path: str) -> Iterator[str]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        before, after = cast(Manifest, old), cast(Manifest, new)
        for key in sorted({*before, *after}):
            yield from _differing(before.get(key), after.get(key), _field(path, key))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _of_lists(cast(list[object], old), cast(list[object], new), path)
    else:
        yield path


def _of_lists(old: list[object], new: list[object], path: str) -> Iterator[str]:
    if len(old) != len(new):
        yield path
        return
    for index, (before, after) in enumerate(zip(old, new, strict=True)):
        yield from _differing(before, after, f"{path}[{_name(after) or index}]")


def _field(path: str, key: str) -> str:
    return f"{path}[{key}]" if "." in key or "/" in key else f"{path}.{key}"


def _name(entry: object) -> str:
    found = list(entries({"one": [entry]}, "one"))
    return text(found[0], "name") if found else ""
