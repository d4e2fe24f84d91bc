"""The status document of an installed package."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from temporal_plans.client.reading.operator_dialect import NewestRun, status_body
from temporal_plans.domain.packages.readiness import Readiness, Ready, ReadyReason
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plan_views import PhaseView, PlanView, StepView
from unit.domain.packages.installations import definition, installed

NOW = datetime(2026, 7, 1, 10, 0, 0, 123456, tzinfo=UTC)
TEXT = "2026-07-01T10:00:00Z"

PACKAGE = definition(
    plans={
        "deploy": {
            "phases": [
                {"name": "zookeeper", "steps": [{"name": "deploy"}]},
                {"name": "validation", "steps": [{"name": "validation"}, {"name": "cleanup"}]},
            ]
        },
        "backup": {"phases": [{"name": "backup", "steps": [{"name": "backup"}]}]},
        "empty": {},
    },
    name="kafka",
    version="1.3.2",
    application="2.5.1",
    BROKER_COUNT={},
    PASSWORD={"secret": True},
)
INSTALLED = installed(PACKAGE, {"BROKER_COUNT": "3", "PASSWORD": "old"}, {"KEY": "ref"})


def step(name: str, status: Status, message: str = "", **more: Any) -> StepView:
    return StepView(id=name, name=name, kind="x", status=status, message=message, **more)


def phase(name: str, status: Status, *steps: StepView) -> PhaseView:
    return PhaseView(id=name, name=name, strategy="serial", status=status, steps=steps)


def plan(name: str, status: Status, *phases: PhaseView, **more: Any) -> PlanView:
    return PlanView(id=name, name=name, strategy="serial", status=status, phases=phases, **more)


def one(view: PlanView, **more: Any) -> dict[str, Any]:
    """Return the entry of a plan."""
    body = status_body(INSTALLED, [NewestRun(view, "u", NOW, **more)])
    entry: dict[str, Any] = body["status"]["planStatus"][view.name]
    return entry


def test_the_document() -> None:
    deploy = plan(
        "deploy",
        Status.IN_PROGRESS,
        phase(
            "zookeeper",
            Status.COMPLETE,
            step("deploy", Status.COMPLETE, "gone", started=NOW, finished=NOW),
        ),
        phase(
            "validation",
            Status.DELAYED,
            step("validation", Status.DELAYED, "no connection", attempt=3),
            step("cleanup", Status.PENDING),
        ),
        started=NOW,
    )
    ready = Readiness(
        status=Ready.UNKNOWN,
        reason=ReadyReason.PLAN_IN_PROGRESS,
        message="plan deploy is IN_PROGRESS",
        since=NOW,
    )
    assert status_body(INSTALLED, [NewestRun(deploy, "uid-1", NOW)], ready, name="events") == {
        "apiVersion": "kudo.dev/v1beta1",
        "kind": "Instance",
        "metadata": {
            "name": "events",
            "namespace": "prod",
            "labels": {"kudo.dev/operator": "kafka"},
        },
        "spec": {
            "operatorVersion": {"name": "kafka-2.5.1-1.3.2"},
            "parameters": {"BROKER_COUNT": "3"},
            "planExecution": {"planName": "deploy", "uid": "uid-1", "status": "IN_PROGRESS"},
        },
        "status": {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "Unknown",
                    "reason": "PlanInProgress",
                    "message": "plan deploy is IN_PROGRESS",
                    "lastTransitionTime": TEXT,
                }
            ],
            "planStatus": {
                "backup": {
                    "name": "backup",
                    "uid": "",
                    "status": "NEVER_RUN",
                    "lastUpdatedTimestamp": None,
                    "phases": [
                        {
                            "name": "backup",
                            "status": "NEVER_RUN",
                            "steps": [{"name": "backup", "status": "NEVER_RUN"}],
                        }
                    ],
                },
                "deploy": {
                    "name": "deploy",
                    "uid": "uid-1",
                    "status": "IN_PROGRESS",
                    "lastUpdatedTimestamp": TEXT,
                    "startedAt": TEXT,
                    "phases": [
                        {
                            "name": "zookeeper",
                            "status": "COMPLETE",
                            "steps": [
                                {
                                    "name": "deploy",
                                    "status": "COMPLETE",
                                    "startedAt": TEXT,
                                    "finishedAt": TEXT,
                                }
                            ],
                        },
                        {
                            "name": "validation",
                            "status": "IN_PROGRESS",
                            "steps": [
                                {
                                    "name": "validation",
                                    "status": "ERROR",
                                    "message": "no connection",
                                    "attempts": 3,
                                },
                                {"name": "cleanup", "status": "PENDING"},
                            ],
                        },
                    ],
                },
                "empty": {
                    "name": "empty",
                    "uid": "",
                    "status": "NEVER_RUN",
                    "lastUpdatedTimestamp": None,
                    "phases": [],
                },
            },
        },
    }


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Status.PENDING, "PENDING"),
        (Status.PREPARED, "IN_PROGRESS"),
        (Status.STARTING, "IN_PROGRESS"),
        (Status.STARTED, "IN_PROGRESS"),
        (Status.IN_PROGRESS, "IN_PROGRESS"),
        (Status.DELAYED, "ERROR"),
        (Status.ERROR, "FATAL_ERROR"),
        (Status.COMPLETE, "COMPLETE"),
        (Status.WAITING, "PENDING"),
    ],
)
def test_statuses_of_steps(ours: Status, theirs: str) -> None:
    entry = one(plan("deploy", ours, phase("p", ours, step("s", ours))))
    assert entry["phases"][0]["steps"][0]["status"] == theirs
    above = "IN_PROGRESS" if theirs == "ERROR" else theirs
    assert (entry["phases"][0]["status"], entry["status"]) == (above, above)


def test_every_status_has_one_of_theirs() -> None:
    known = {"NEVER_RUN", "PENDING", "IN_PROGRESS", "ERROR", "FATAL_ERROR", "COMPLETE"}
    for status in Status:
        entry = one(plan("deploy", status, phase("p", status, step("s", status, started=NOW))))
        steps = entry["phases"][0]["steps"]
        assert {entry["status"], entry["phases"][0]["status"], steps[0]["status"]} <= known


def test_a_fatal_step_is_fatal_for_its_parents_and_has_the_only_message() -> None:
    failed = phase(
        "p",
        Status.ERROR,
        step("a", Status.ERROR, "broken", errors=("x",)),
        step("b", Status.PENDING),
    )
    rest = phase("q", Status.PENDING, step("c", Status.PENDING))
    entry = one(plan("deploy", Status.ERROR, failed, rest, errors=("p: broken",)))
    assert (entry["status"], entry["phases"][0]["status"]) == ("FATAL_ERROR", "FATAL_ERROR")
    assert entry["phases"][1]["status"] == "PENDING"
    assert "message" not in entry
    assert entry["phases"][0]["steps"][0]["message"] == "broken"


def test_a_plan_that_can_not_run_says_why() -> None:
    entry = one(plan("deploy", Status.ERROR, errors=("can't run",)))
    assert (entry["status"], entry["message"]) == ("FATAL_ERROR", "can't run")


@pytest.mark.parametrize("status", [Status.WAITING, Status.IN_PROGRESS])
def test_a_plan_that_was_stopped_is_over(status: Status) -> None:
    view = plan("deploy", status, phase("p", status, step("a", Status.PENDING)))
    entry = one(view, ended="stopped")
    assert (entry["status"], entry["message"]) == ("FATAL_ERROR", "stopped")
    body = status_body(INSTALLED, [NewestRun(view, "u", NOW, "stopped")])
    assert body["spec"]["planExecution"] == {}
    done = plan("deploy", Status.COMPLETE)
    assert one(done, ended="stopped")["status"] == "COMPLETE"


def test_of_two_plans_that_run_the_one_that_changed_last_is_told_and_former_plans_stay() -> None:
    deploy, former = plan("deploy", Status.IN_PROGRESS), plan("former", Status.IN_PROGRESS)
    runs = [NewestRun(deploy, "1", NOW), NewestRun(former, "2", NOW + timedelta(seconds=1))]
    body = status_body(INSTALLED, runs, deleting=NOW)
    assert body["spec"]["planExecution"]["planName"] == "former"
    assert sorted(body["status"]["planStatus"]) == ["backup", "deploy", "empty", "former"]
    assert body["metadata"]["deletionTimestamp"] == TEXT
    assert body["metadata"]["name"] == "shop"
    assert body["status"]["conditions"] == []
    assert status_body(INSTALLED, [])["spec"]["planExecution"] == {}
    unknown = [run._replace(changed=None) for run in runs]
    assert status_body(INSTALLED, unknown)["spec"]["planExecution"]["planName"] == "former"
