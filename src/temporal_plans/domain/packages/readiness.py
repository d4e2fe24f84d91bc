"""Whether an instance is ready: from its plans and from the objects that it has in its cluster.

Unlike a plan's status it also changes while no plan runs.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, cast

from pydantic import AwareDatetime

from temporal_plans.domain.owners.exclusion import PlanSituation
from temporal_plans.domain.packages.health import HealthState, Object, health
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.plans import DEPLOY, UPDATE, UPGRADE
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import listed, shortened

MESSAGES_LISTED = 10
"""Objects that the message of a readiness names."""

_CHANGING = (DEPLOY, UPDATE, UPGRADE)


class Ready(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ReadyReason(StrEnum):
    """The reasons, as the status document of the system that is followed has them; the last one is
    ours: nobody has looked at the objects yet."""

    PLAN_IN_PROGRESS = "PlanInProgress"
    PLAN_IN_FATAL_ERROR = "PlanInFatalError"
    RESOURCES_READY = "ResourcesReady"
    RESOURCE_NOT_READY = "ResourceNotReady"
    RESOURCES_UNKNOWN = "ResourcesUnknown"


class Readiness(CompactValue):
    """Whether an instance is ready, why, and since when it is so."""

    status: Ready
    reason: ReadyReason
    message: str = ""
    since: AwareDatetime | None = None


class Seen(NamedTuple):
    """What was found of an instance in its cluster: objects as the API server returned them, those
    that it applied and those that belong to them, and which of the applied ones are gone."""

    objects: Sequence[Object] = ()
    gone: Sequence[ObjectRef] = ()


def readiness(
    plans: Sequence[PlanSituation],
    seen: Seen | None,
    before: Readiness | None,
    now: AwareDatetime,
) -> Readiness:
    """Return the readiness of an instance now.

    ``plans`` are its plans in the order of their last changes, the newest last; ``seen`` is None
    where nobody could look. While another plan than ``deploy``, ``update`` or ``upgrade`` runs, it
    stays as it was.
    """
    found = _found(plans, seen, before)
    same = before is not None and before.status is found.status
    return found.but(since=before.since if same and before is not None else now)


def _found(
    plans: Sequence[PlanSituation], seen: Seen | None, before: Readiness | None
) -> Readiness:
    running = [one for one in plans if one.open and not one.is_idle]
    for one in running:
        if one.plan in _CHANGING:
            text = f"plan {one.plan} is {one.status}"
            return _unknown(ReadyReason.PLAN_IN_PROGRESS, text)
    if running and before is not None:
        return before
    if plans and not running and plans[-1].status is Status.ERROR:
        text = f"plan {plans[-1].plan} failed; explain says why"
        return _unknown(ReadyReason.PLAN_IN_FATAL_ERROR, text)
    if seen is None:
        return before or _unknown(ReadyReason.RESOURCES_UNKNOWN, "nobody has looked yet")
    if problems := [*_gone(seen.gone), *_problems(seen.objects)]:
        return Readiness(
            status=Ready.FALSE,
            reason=ReadyReason.RESOURCE_NOT_READY,
            message=shortened(listed(problems, MESSAGES_LISTED)),
        )
    return Readiness(status=Ready.TRUE, reason=ReadyReason.RESOURCES_READY)


def _unknown(reason: ReadyReason, message: str) -> Readiness:
    return Readiness(status=Ready.UNKNOWN, reason=reason, message=message)


def _gone(objects: Iterable[ObjectRef]) -> Iterator[str]:
    return (f"{one} is gone" for one in objects)


def _problems(objects: Sequence[Object]) -> Iterator[str]:
    """Yield what is wrong with the objects. One with a controller that is looked at, too, is told
    only where the controller is not healthy: pods come and go. A Job is no part of what must be
    ready, and told only where it failed; its pods never are."""
    owned: dict[str, list[Object]] = {}
    known = {_uid(one) for one in objects} - {""}
    roots: list[Object] = []
    for one in objects:
        kind, owner = _controller(one)
        if owner in known:
            owned.setdefault(owner, []).append(one)
        elif kind != "Job":
            roots.append(one)
    for root in roots:
        yield from _of(root, owned, set())


def _of(one: Object, owned: Mapping[str, Sequence[Object]], above: set[str]) -> Iterator[str]:
    found, job = health(one), one.get("kind") == "Job"
    wanted = (HealthState.FAILED,) if job else (HealthState.FAILED, HealthState.UNHEALTHY)
    if found.state not in wanted:
        return
    metadata = _mapping(one.get("metadata"))
    yield f"{one.get('kind', '')} {metadata.get('name', '')}: {found.reason}"
    uid = _uid(one)
    if job or uid in above:  # objects come from outside: they may own each other
        return
    for child in owned.get(uid, ()):
        yield from _of(child, owned, {*above, uid})


def _uid(one: Object) -> str:
    uid = _mapping(one.get("metadata")).get("uid")
    return uid if isinstance(uid, str) else ""


def _controller(one: Object) -> tuple[str, str]:
    """Return kind and uid of the controller of an object; empty without one."""
    found = _mapping(one.get("metadata")).get("ownerReferences")
    owners: list[Any] = cast(Any, found) if isinstance(found, list) else []
    for entry in map(_mapping, owners):
        if entry.get("controller") is True:
            return str(entry.get("kind", "")), str(entry.get("uid", ""))
    return "", ""


def _mapping(value: Any) -> Object:
    return cast(Object, value) if isinstance(value, Mapping) else {}
