"""Readiness: from plans, and from objects while no plan runs."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from temporal_plans.domain.owners.exclusion import PlanSituation
from temporal_plans.domain.packages.inventory import ObjectRef
from temporal_plans.domain.packages.readiness import (
    Readiness,
    Ready,
    ReadyReason,
    Seen,
    readiness,
)
from temporal_plans.domain.plans.status import Status

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)
TRUE = Readiness(status=Ready.TRUE, reason=ReadyReason.RESOURCES_READY, since=EARLIER)


def live(kind: str, name: str, *, owner: tuple[str, str] | None = None, **fields: Any) -> Any:
    api = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}.get(kind, "v1")
    metadata: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "generation": 1}
    if owner:
        reference = {"kind": owner[0], "uid": f"uid-{owner[1]}", "controller": True}
        metadata["ownerReferences"] = [reference]
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}


def sets(name: str, ready: int) -> Any:
    status = {"observedGeneration": 1, "readyReplicas": ready}
    return live("StatefulSet", name, spec={"replicas": 1}, status=status)


def pod(name: str, phase: str = "Pending", owner: tuple[str, str] | None = None) -> Any:
    return live("Pod", name, owner=owner, status={"phase": phase})


def job(name: str, condition: str = "") -> Any:
    conditions = [{"type": condition, "status": "True", "message": "why"}] if condition else []
    return live("Job", name, status={"conditions": conditions})


@pytest.mark.parametrize("plan", ["deploy", "update", "upgrade"])
@pytest.mark.parametrize("status", [Status.PENDING, Status.IN_PROGRESS, Status.DELAYED])
def test_it_is_unknown_while_a_plan_changes_the_instance(plan: str, status: Status) -> None:
    found = readiness([PlanSituation(plan, status)], Seen(), TRUE, NOW)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.PLAN_IN_PROGRESS)
    assert found.message == f"plan {plan} is {status}"
    assert found.since == NOW


@pytest.mark.parametrize("before", [TRUE, TRUE.but(status=Ready.FALSE)])
def test_it_stays_while_another_plan_runs(before: Readiness) -> None:
    plans = [PlanSituation("backup", Status.IN_PROGRESS)]
    assert readiness(plans, Seen([sets("db", 0)]), before, NOW) == before
    assert readiness(plans, Seen([sets("db", 0)]), None, NOW).status is Ready.FALSE


@pytest.mark.parametrize("opened", [True, False])
def test_it_is_unknown_after_a_plan_that_failed_until_another_is_over(opened: bool) -> None:
    failed = PlanSituation("backup", Status.ERROR, open=opened, resting=opened)
    found = readiness([failed], Seen(), TRUE, NOW)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.PLAN_IN_FATAL_ERROR)
    assert "plan backup failed" in found.message
    complete = PlanSituation("deploy", Status.COMPLETE, open=False)
    assert readiness([failed, complete], Seen(), found, NOW).status is Ready.TRUE


def test_it_is_unknown_until_somebody_looks_and_stays_while_nobody_can() -> None:
    found = readiness([], None, None, NOW)
    assert (found.status, found.reason) == (Ready.UNKNOWN, ReadyReason.RESOURCES_UNKNOWN)
    assert readiness([], None, TRUE, NOW) == TRUE


def test_it_has_the_time_of_its_last_change() -> None:
    assert readiness([], Seen(), TRUE, NOW) == TRUE
    assert readiness([], Seen([sets("db", 0)]), TRUE, NOW).since == NOW


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([], "", id="nothing"),
        pytest.param([sets("db", 1)], "", id="ready"),
        pytest.param([sets("db", 0)], "StatefulSet db: 0 of 1 replicas are ready", id="not-ready"),
        pytest.param(
            [sets("db", 1), sets("a", 0), sets("b", 0)],
            "StatefulSet a: 0 of 1 replicas are ready, StatefulSet b: 0 of 1 replicas are ready",
            id="a-mix",
        ),
        pytest.param(
            [sets("db", 1), pod("db-0", owner=("StatefulSet", "db"))], "", id="pod-of-healthy"
        ),
        pytest.param(
            [sets("db", 0), pod("db-0", owner=("StatefulSet", "db"))],
            "StatefulSet db: 0 of 1 replicas are ready, Pod db-0: the pod is Pending and not ready",
            id="pod-of-unhealthy",
        ),
        pytest.param([pod("x", owner=("ReplicaSet", "y"))], "Pod x: ", id="owner-not-seen"),
        pytest.param([pod("x", "Failed", owner=("Job", "y"))], "", id="pod-of-a-job"),
        pytest.param(
            [job("y", "Complete"), pod("x", owner=("Job", "y"))], "", id="pod-of-a-done-job"
        ),
        pytest.param([job("y")], "", id="a-job-at-work"),
        pytest.param(
            [job("y", "Failed"), pod("x", "Failed", owner=("Job", "y"))],
            "Job y: the Job failed: why",
            id="a-failed-job",
        ),
        pytest.param([live("ConfigMap", "c")], "", id="nothing-to-wait-for"),
        pytest.param([{"kind": 5}, {"metadata": {"ownerReferences": 3}}], "", id="not-objects"),
    ],
)
def test_objects(objects: list[Any], message: str) -> None:
    found = readiness([], Seen(objects), None, NOW)
    assert found.message.startswith(message)
    assert found.status is (Ready.FALSE if message else Ready.TRUE)
    if message and not message.endswith(": "):
        assert found.message == message


def test_objects_that_own_each_other_end() -> None:
    first = pod("a", owner=("Pod", "b"))
    second = pod("b", owner=("Pod", "a"))
    assert readiness([], Seen([first, second]), None, NOW).status is Ready.TRUE


def test_what_is_gone_is_told_and_the_message_is_bounded() -> None:
    gone = ObjectRef(api_version="v1", kind="Secret", namespace="n", name="key")
    assert readiness([], Seen(gone=[gone]), None, NOW).message == "Secret key is gone"
    many = readiness([], Seen([sets(f"db-{i}", 0) for i in range(500)]), None, NOW)
    assert many.message.endswith("and 490 more")
