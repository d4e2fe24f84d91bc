"""Whether an instance is ready: from its plans and from the objects that it has in its cluster.

Unlike a plan's status it also changes while no plan runs.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from pydantic import AwareDatetime

from temporal_plans.domain.owners.exclusion import PlanSituation
from temporal_plans.domain.packages.object_report import ObjectReport, ObjectState
from temporal_plans.domain.packages.plans import DEPLOY, UPDATE, UPGRADE
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.text import listed, shortened

MESSAGES_LISTED, FIELDS_LISTED = 10, 3
"""Objects that the message of a readiness names, and changed fields of each."""

NOT_LOOKED_AT = "its objects were not looked at yet"

_CHANGING = (DEPLOY, UPDATE, UPGRADE)


class Ready(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class ReadyReason(StrEnum):
    """The reasons, as the status document of the system that is followed has them; the last one is
    ours: the objects were not looked at yet, or can't be looked at."""

    PLAN_IN_PROGRESS = "PlanInProgress"
    PLAN_IN_FATAL_ERROR = "PlanInFatalError"
    RESOURCES_READY = "ResourcesReady"
    RESOURCE_NOT_READY = "ResourceNotReady"
    RESOURCES_UNKNOWN = "ResourcesUnknown"


class Readiness(CompactValue):
    """Whether an instance is ready, why, and since when it is so. The ``message`` of one that is
    ready says what others have changed."""

    status: Ready
    reason: ReadyReason
    message: str = ""
    since: AwareDatetime | None = None

    @property
    def trouble(self) -> str:
        """What is wrong with its objects, in a line; empty when nothing is, or when a plan says
        what is wrong."""
        match self.reason:
            case ReadyReason.RESOURCES_READY:
                return self.message
            case ReadyReason.RESOURCE_NOT_READY:
                return f"not ready: {self.message}"
            case ReadyReason.RESOURCES_UNKNOWN if self.message != NOT_LOOKED_AT:
                return f"readiness unknown: {self.message}"
            case _:
                return ""


def readiness(
    plans: Sequence[PlanSituation],
    reports: Iterable[ObjectReport] | None,
    before: Readiness | None,
    now: AwareDatetime,
    *,
    problem: str = "",
) -> Readiness:
    """Return the readiness of an instance now.

    ``plans`` are its plans in the order of their last changes, the newest last; ``reports`` are
    those of its objects, at least of those that are notable, None before the first look;
    ``problem`` is why the last look failed.
    While another plan than ``deploy``, ``update`` or ``upgrade`` runs, it stays as it was.
    """
    found = _found(plans, reports, before, problem)
    same = before is not None and before.status is found.status
    return found.but(since=before.since if same and before is not None else now)


def _found(
    plans: Sequence[PlanSituation],
    reports: Iterable[ObjectReport] | None,
    before: Readiness | None,
    problem: str,
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
    if problem:
        return _unknown(ReadyReason.RESOURCES_UNKNOWN, shortened(problem))
    if reports is None:
        return before or _unknown(ReadyReason.RESOURCES_UNKNOWN, NOT_LOOKED_AT)
    seen = list(reports)
    if problems := [f"{one.ref}: {one.reason}" for one in seen if _is_bad(one)]:
        return Readiness(
            status=Ready.FALSE,
            reason=ReadyReason.RESOURCE_NOT_READY,
            message=shortened(listed(problems, MESSAGES_LISTED)),
        )
    return Readiness(status=Ready.TRUE, reason=ReadyReason.RESOURCES_READY, message=_changes(seen))


def _changes(reports: Iterable[ObjectReport]) -> str:
    """Return what others have changed of healthy objects: these are ready, and not as applied."""
    changed = [
        f"{one.ref} ({listed([str(each) for each in one.changes], FIELDS_LISTED)})"
        for one in reports
        if one.changes
    ]
    return shortened(f"changed by others: {listed(changed, MESSAGES_LISTED)}") if changed else ""


def _unknown(reason: ReadyReason, message: str) -> Readiness:
    return Readiness(status=Ready.UNKNOWN, reason=reason, message=message)


def _is_bad(report: ObjectReport) -> bool:
    """Whether an object keeps the instance from being ready. A Job is no part of what must be
    ready, unless it failed: it may be deleted after its time to live."""
    if report.ref.kind == "Job":
        return report.state is ObjectState.FAILED
    return report.state is not ObjectState.HEALTHY
