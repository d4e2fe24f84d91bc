"""Readiness: from plans, and from objects while no plan runs."""

from datetime import UTC, datetime, timedelta

import pytest

from temporal_plans.domain.owners.exclusion import PlanSituation
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.object_report import FieldChange, ObjectReport, ObjectState
from temporal_plans.domain.packages.readiness import (
    Readiness,
    Ready,
    ReadyReason,
    readiness,
)
from temporal_plans.domain.plans.status import Status

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
TRUE = Readiness(status=Ready.TRUE, reason=ReadyReason.RESOURCES_READY, since=EARLIER)


def seen(kind: str, name: str, state: ObjectState, reason: str = "") -> ObjectReport:
    ref = ObjectRef(api_version="v1", kind=kind, name=name)
    return ObjectReport(ref=ref, state=state, reason=reason)


DOWN = seen("StatefulSet", "db", ObjectState.UNHEALTHY, "0 of 1 replicas are ready")


@pytest.mark.parametrize("plan", ["deploy", "update", "upgrade"])
@pytest.mark.parametrize("status", [Status.PENDING, Status.IN_PROGRESS, Status.DELAYED])
def test_it_is_unknown_while_a_plan_changes_the_instance(plan: str, status: Status) -> None:
    found = readiness([PlanSituation(plan, status)], [], TRUE, NOW)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.PLAN_IN_PROGRESS)
    assert found.message == f"plan {plan} is {status}"
    assert found.since == NOW


@pytest.mark.parametrize("before", [TRUE, TRUE.but(status=Ready.FALSE)])
def test_it_stays_while_another_plan_runs(before: Readiness) -> None:
    plans = [PlanSituation("backup", Status.IN_PROGRESS)]
    assert readiness(plans, [DOWN], before, NOW) == before
    assert readiness(plans, [DOWN], None, NOW).status is Ready.FALSE


@pytest.mark.parametrize("opened", [True, False])
def test_it_is_unknown_after_a_plan_that_failed_until_another_is_over(opened: bool) -> None:
    failed = PlanSituation("backup", Status.ERROR, open=opened, resting=opened)
    found = readiness([failed], [], TRUE, NOW)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.PLAN_IN_FATAL_ERROR)
    assert "plan backup failed" in found.message
    complete = PlanSituation("deploy", Status.COMPLETE, open=False)
    assert readiness([failed, complete], [], found, NOW).status is Ready.TRUE


def test_it_is_unknown_until_somebody_looks_and_stays_while_nobody_can() -> None:
    found = readiness([], None, None, NOW)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.RESOURCES_UNKNOWN)
    assert readiness([], None, TRUE, NOW) == TRUE


def test_it_has_the_time_of_its_last_change() -> None:
    assert readiness([], [], TRUE, NOW) == TRUE
    assert readiness([], [DOWN], TRUE, NOW).since == NOW


@pytest.mark.parametrize(
    ("report", "message"),
    [
        (DOWN, "StatefulSet db: 0 of 1 replicas are ready"),
        (seen("Pod", "a", ObjectState.FOREIGN, "it belongs to b"), "Pod a: it belongs to b"),
        (seen("Job", "j", ObjectState.FAILED, "why"), "Job j: why"),
        (seen("Job", "j", ObjectState.UNHEALTHY, "0 of 1 pods succeeded"), ""),
        (seen("ConfigMap", "c", ObjectState.MISSING, "it is gone"), "ConfigMap c: it is gone"),
        (seen("Job", "j", ObjectState.MISSING, "its time to live is over"), ""),
        (seen("Service", "s", ObjectState.HEALTHY), ""),
    ],
)
def test_objects(report: ObjectReport, message: str) -> None:
    found = readiness([], [report], None, NOW)
    assert found.message == message
    assert found.status is (Ready.FALSE if message else Ready.TRUE)


def test_a_failed_look_makes_it_unknown_until_the_next_one() -> None:
    found = readiness([], [], TRUE, NOW, problem="Unauthorized (401)")
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.RESOURCES_UNKNOWN)
    assert found.trouble == "readiness unknown: Unauthorized (401)"
    assert readiness([], [], found, NOW).trouble == ""


def test_what_others_changed_is_said_of_a_ready_instance() -> None:
    changes = [FieldChange(field=f"data.f{number}", by="kubectl") for number in range(9)]
    report = seen("ConfigMap", "c", ObjectState.HEALTHY).but(changes=tuple(changes))
    found = readiness([], [report], TRUE, NOW)
    assert (found.status, found.since) == (Ready.TRUE, EARLIER)
    assert found.trouble.startswith("changed by others: ConfigMap c (data.f0 (by kubectl), ")
    assert found.trouble.endswith("and 6 more)")


def test_trouble_is_what_plans_do_not_say() -> None:
    running = readiness([PlanSituation("deploy", Status.IN_PROGRESS)], [DOWN], TRUE, NOW)
    failed = readiness([PlanSituation("deploy", Status.ERROR)], [DOWN], TRUE, NOW)
    unseen = readiness([], None, None, NOW)
    assert [one.trouble for one in (running, failed, unseen)] == ["", "", ""]
    down = readiness([], [DOWN], TRUE, NOW)
    assert down.trouble == "not ready: StatefulSet db: 0 of 1 replicas are ready"


def test_the_message_is_bounded() -> None:
    reports = [DOWN.but(reason="x" * 400)] * 500
    assert len(readiness([], reports, None, NOW).message) < 5000
