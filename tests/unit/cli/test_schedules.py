"""Schedules of plans by the command line."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from builders.services import pod, service, service_status
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.client.temporal.schedules import Overlap, ScheduleRequest, Timetable
from temporal_plans.domain.services.spec import (
    PhaseYaml,
    PlanYaml,
)
from temporal_plans.messages.plans import PlanInput
from temporal_plans.messages.schedules import ScheduledPlan
from unit.cli.kit import DONE, Run
from unit.fake_gateway import FakeGateway, FakeWorkflow

PLAN_FILE = """
name: nightly
parameters:
  LABEL: {required: true}
phases:
  rest:
    steps:
      nap: {sleep: 1s}
"""

POD = pod("hello", 1)
PHASES = {"hello": PhaseYaml(pod="hello")}
SPEC = service(
    POD,
    name="hello-world",
    plans={
        "deploy": PlanYaml(phases=PHASES),
        "backup": PlanYaml(phases=PHASES, parameters=[{"name": "LABEL", "pattern": "[a-z]+"}]),
    },
)
NIGHTLY = ("--cron", "0 3 * * *")


@pytest.fixture(autouse=True)
def _service_with_a_backup(gateway: FakeGateway) -> None:
    status = service_status("hello-world", "deploy", "backup", "recovery")
    gateway.workflows["service/hello-world"].answers.update(status=status, config=SPEC)


@pytest.fixture
def plan_file(tmp_path: Path) -> str:
    path = tmp_path / "nightly.yml"
    path.write_text(PLAN_FILE)
    return str(path)


def only(gateway: FakeGateway) -> ScheduleRequest:
    [request] = gateway.schedules.requests.values()
    return request


def test_a_plan_of_a_service(run: Run, gateway: FakeGateway) -> None:
    options = ("--time-zone", "Europe/Oslo", "-p", "LABEL=night", "--overlap", "cancel-other")
    ran = run("schedule", "create", "backup", *NIGHTLY, *options, "--reason", "asked for")
    assert (ran.code, ran.out) == (0, 'Schedule "hello-world/backup" is set.\n')
    request = only(gateway)
    assert request.when == Timetable(cron=("0 3 * * *",), time_zone="Europe/Oslo")
    assert request.overlap is Overlap.CANCEL_OTHER
    assert request.note.endswith(": asked for")
    assert request.work == ScheduledPlan(
        service="hello-world",
        plan="backup",
        parameters={"LABEL": "night"},
        schedule="hello-world/backup",
    )


def test_several_of_a_plan_have_names(run: Run, gateway: FakeGateway) -> None:
    assert run("schedule", "create", "backup", *NIGHTLY).code == 0
    again = run("schedule", "create", "backup", "--every", "6h")
    assert again.code == 1
    assert "schedule 'hello-world/backup' already exists" in again.err
    assert run("schedule", "create", "backup", "--every", "6h", "--name", "often").code == 0
    assert list(gateway.schedules.requests) == ["hello-world/backup", "hello-world/backup/often"]
    often = gateway.schedules.requests["hello-world/backup/often"]
    assert often.when == Timetable(every=(timedelta(hours=6),))


def test_a_plan_file_is_started_as_it_is(run: Run, gateway: FakeGateway, plan_file: str) -> None:
    ran = run("schedule", "create", plan_file, "--every", "1d", "-p", "LABEL=a")
    assert (ran.code, ran.out) == (0, 'Schedule "nightly" is set.\n')
    order = only(gateway)
    assert isinstance(order.work, PlanInput)
    assert (order.work.name, order.work.arguments) == ("nightly", {"LABEL": "a"})
    assert order.overlap is Overlap.SKIP


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(("bakup", *NIGHTLY), "has no plan 'bakup'; did you mean backup?", id="plan"),
        pytest.param(
            ("backup", *NIGHTLY, "-p", "LABEL=9"), "parameters.LABEL", id="parameter-value"
        ),
        pytest.param(("backup", *NIGHTLY, "-p", "X=9"), "parameters.X", id="parameter"),
        pytest.param(("recovery", *NIGHTLY), "is started by its owner only", id="standing"),
        pytest.param(
            ("backup", *NIGHTLY, "--overlap", "terminate-other"), "use cancel-other", id="policy"
        ),
    ],
)
def test_what_can_not_be_scheduled(
    run: Run, gateway: FakeGateway, arguments: tuple[str, ...], complaint: str
) -> None:
    ran = run("schedule", "create", *arguments)
    assert ran.code == 1
    assert complaint in ran.err
    assert gateway.schedules.requests == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ("backup",),
        ("backup", "--every", "soon"),
        ("backup", "--every", "0s"),
        ("backup", *NIGHTLY, "--time-zone", "Europe/Asgard"),
        ("backup", *NIGHTLY, "--time-zone", "../passwd"),
        ("backup", *NIGHTLY, "--name", "a/b"),
        ("no-such-file.yml", *NIGHTLY),
    ],
    ids=" ".join,
)
def test_wrong_usage(run: Run, gateway: FakeGateway, arguments: tuple[str, ...]) -> None:
    ran = run("schedule", "create", *arguments)
    assert ran.code == 2
    assert gateway.schedules.requests == {}


def test_list_and_show(run: Run, gateway: FakeGateway, plan_file: str) -> None:
    assert run("schedule", "list").out.startswith("No schedules.")
    run("schedule", "create", "backup", *NIGHTLY, "--time-zone", "Asia/Tokyo", "-p", "LABEL=a")
    run("schedule", "create", plan_file, "--every", "90m", "-p", "LABEL=a")
    lines = run("schedule", "list").out.splitlines()
    assert lines[1].startswith("hello-world/backup  0 3 * * * (Asia/Tokyo)")
    assert lines[2].startswith("nightly             every 1h 30m")
    of_service = json.loads(run("schedule", "list", "-s", "hello-world", "--json").out)
    assert [one["id"] for one in of_service] == ["hello-world/backup"]
    shown = run("schedule", "show", "hello-world/backup").out
    assert "starts   plan backup of hello-world with LABEL=a" in shown
    assert "overlap  skip" in shown
    assert json.loads(run("schedule", "show", "nightly", "--json").out)["plan"] == "nightly"


@pytest.mark.parametrize("command", ["pause", "unpause", "trigger", "delete"])
def test_commands_to_a_schedule(run: Run, gateway: FakeGateway, command: str) -> None:
    run("schedule", "create", "backup", *NIGHTLY)
    reason = ("--reason", "moving") if command in ("pause", "unpause") else ()
    assert run("schedule", command, "hello-world/backup", *reason).code == 0
    [(what, schedule, note)] = gateway.schedules.told
    assert (what, schedule) == (command, "hello-world/backup")
    assert note.endswith(": moving") == bool(reason)


@pytest.mark.parametrize("command", ["show", "pause", "unpause", "trigger", "delete"])
def test_an_unknown_schedule_names_close_ones(run: Run, command: str) -> None:
    run("schedule", "create", "backup", *NIGHTLY)
    ran = run("schedule", command, "hello-world/bakup")
    assert ran.code == 1
    assert "'hello-world/bakup' not found; did you mean hello-world/backup?" in ran.err


def test_uninstall_tells_of_schedules_that_stay(run: Run, gateway: FakeGateway) -> None:
    run("schedule", "create", "backup", *NIGHTLY)
    gateway.workflows["service/hello-world"].answers["uninstall"] = DONE
    gateway.workflows["hello-world/deploy"] = FakeWorkflow("Plan", ended=Ended.COMPLETED)
    ran = run("uninstall", "--yes")
    assert ran.code == 0
    assert "delete it with `temporal plan schedule delete hello-world/backup`" in ran.out


def test_a_malformed_cron_expression_is_refused_in_our_words(run: Run) -> None:
    ran = run("schedule", "create", "backup", "--cron", "61 3 * * *")
    assert ran.code == 1
    assert (
        "cron: the minute is '61' (found \"61 3 * * *\"); write *, a number from 0 to 59" in ran.err
    )


def test_the_zone_of_a_cron_expression_is_shown_also_where_it_is_the_default(run: Run) -> None:
    run("schedule", "create", "backup", *NIGHTLY)
    assert "when     0 3 * * * (UTC)" in run("schedule", "show", "hello-world/backup").out
