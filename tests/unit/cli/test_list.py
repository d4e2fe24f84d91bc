"""``list``: by status, and without the runs of schedules."""

import json

import pytest

from builders.plan_views import plan
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plans import PlanResult
from unit.cli.kit import Run
from unit.fake_gateway import FakeGateway, FakeWorkflow


def ended(name: str, *, scheduled: bool = False) -> FakeWorkflow:
    view = plan(Status.COMPLETE, name=name)
    return FakeWorkflow(
        "Plan",
        {"status": view},
        ended=Ended.COMPLETED,
        scheduled=scheduled,
        result=PlanResult(status=Status.COMPLETE, view=view),
    )


@pytest.fixture
def some(gateway: FakeGateway) -> FakeGateway:
    stopped = plan(Status.IN_PROGRESS, name="stopped")
    gateway.workflows |= {
        "backup": ended("backup"),
        "nightly-1": ended("nightly", scheduled=True),
        "nightly-2": FakeWorkflow(
            "Plan", {"status": plan(Status.WAITING, name="nightly")}, scheduled=True
        ),
        "stopped": FakeWorkflow("Plan", {"status": stopped}, ended=Ended.TERMINATED),
    }
    return gateway


def listed(run: Run, *arguments: str) -> list[str]:
    return [one["id"] for one in json.loads(run("list", "--json", *arguments).out)]


def test_ended_runs_of_schedules_are_listed_when_asked(run: Run, some: FakeGateway) -> None:
    usual = ["hello-world/deploy", "backup", "nightly-2", "stopped"]
    assert listed(run) == usual
    assert sorted(listed(run, "--scheduled")) == sorted([*usual, "nightly-1"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--status", "complete"), ["backup"]),
        (("--status", "WAITING"), ["nightly-2"]),
        (("--status", "terminated"), ["stopped"]),
        (("--status", "in-progress", "--status", "COMPLETE"), ["backup", "stopped"]),
    ],
    ids=str,
)
def test_plans_by_status(
    run: Run, some: FakeGateway, arguments: tuple[str, ...], expected: list[str]
) -> None:
    found = [one for one in listed(run, *arguments) if one != "hello-world/deploy"]
    assert found == expected


def test_no_plan_of_a_status(run: Run, some: FakeGateway) -> None:
    assert run("list", "--status", "delayed", "-s", "").out == "No plans are DELAYED.\n"


def test_what_is_no_status_is_a_usage_error(run: Run) -> None:
    ran = run("list", "--status", "wating")
    assert ran.code == 2
    assert "did you mean WAITING" in " ".join(ran.err.split())
