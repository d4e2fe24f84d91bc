"""Commands that read: show, list, log."""

import json

import pytest

from builders.plan_views import plan
from builders.services import plan_record, service_status
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.plans.status import Status
from temporal_plans.messages.plans import CommandLog, LogEntry
from unit.cli.kit import DONE, Run
from unit.fake_gateway import THEN, FakeGateway, FakeWorkflow


def test_show_prints_the_tree_plain_in_a_pipe(run: Run) -> None:
    out = run("show", "deploy").out
    assert out.startswith("deploy (serial strategy) (IN_PROGRESS)\n├─ hello (serial strategy)")
    assert "\x1b" not in out


def test_colour_can_be_had_and_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from temporal_plans.cli.terminal import output

    output.console.cache_clear()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[32m" in run("show", "deploy").out
    output.console.cache_clear()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in run("show", "deploy").out
    output.console.cache_clear()


def test_show_json_is_the_apis_shape(run: Run) -> None:
    body = json.loads(run("show", "deploy", "--json").out)
    assert {"phases", "errors", "strategy", "status"} <= set(body)
    assert body["phases"][1]["strategy"] == "serial-canary"
    assert body["phases"][0]["steps"][0]["name"] == "hello-0:[server]"
    assert body["phases"][0]["steps"][0]["status"] == "COMPLETE"
    message = body["phases"][0]["steps"][0]["message"]
    assert message.endswith("[id-of-hello-0:[server]] with status: COMPLETE")


def test_show_without_a_plan_shows_all_of_the_service(run: Run) -> None:
    assert run("show").out.startswith("deploy (serial strategy)")
    assert [body["name"] for body in json.loads(run("show", "--json").out)] == ["deploy"]


def test_show_watch_ends_with_the_plan(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows["hello-world/deploy"].answers["status"] = plan(Status.COMPLETE)
    ran = run("show", "deploy", "--watch")
    assert (ran.code, ran.out[9:]) == (0, "deploy COMPLETE\n")
    gateway.workflows["hello-world/deploy"].answers["status"] = plan(
        Status.ERROR, errors=("p: s: no such task",)
    )
    ran = run("show", "deploy", "--watch")
    assert ran.code == 1
    assert "error: p: s: no such task" in ran.out


def test_the_service_may_come_from_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_PLAN_SERVICE", "helo-world")
    ran = run("show", "deploy")
    assert ran.err == "Error: service 'helo-world' not found; did you mean hello-world?\n"
    assert run("show", "deploy", "-s", "hello-world").code == 0


def test_list(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows["nightly"] = FakeWorkflow(
        "Plan", {"status": plan(Status.WAITING, name="nightly")}, ended=Ended.TERMINATED
    )
    lines = run("list").out.splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["SERVICE", "KIND", "PLAN", "STATUS"],
        ["hello-world", "service", "deploy", "PENDING"],
        ["-", "plan", "nightly", "WAITING,"],
    ]
    assert [entry["id"] for entry in json.loads(run("list", "--json").out)] == [
        "hello-world/deploy",
        "nightly",
    ]


def test_a_plan_whose_workflow_failed_is_listed_as_failed(run: Run, gateway: FakeGateway) -> None:
    failed = FakeWorkflow("Plan", {"status": plan(Status.PENDING)}, ended=Ended.FAILED)
    gateway.workflows |= {"nightly": failed, "hello-world/deploy": failed}
    record = plan_record("hello-world", "deploy", run=1)
    gateway.workflows["service/hello-world"].answers["status"] = service_status(
        "hello-world", record
    )
    lines = run("list").out.splitlines()[1:]
    assert [line.split()[:4] for line in lines] == [
        ["hello-world", "service", "deploy", "FAILED"],
        ["-", "plan", "nightly", "FAILED"],
    ]
    assert [entry["ended"] for entry in json.loads(run("list", "--json").out)] == ["failed"] * 2


def test_list_of_nothing_says_what_to_do(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows.clear()
    assert "temporal plan deploy" in run("list").out


def test_what_others_wrote_does_not_steer_the_terminal(run: Run, gateway: FakeGateway) -> None:
    reason = "a\x1b[31m\rb\nc\td\x9b\u2028\u202e"
    entry = LogEntry(at=THEN, verb="stop", via="update", reason=reason, outcome=DONE)
    gateway.workflows["hello-world/deploy"].answers["log"] = CommandLog(entries=(entry,))
    _, line = run("log", "deploy").out.splitlines()
    assert "a\ufffd[31m\ufffdb c d\ufffd\ufffd\ufffd" in line


def test_log(run: Run, gateway: FakeGateway) -> None:
    entry = LogEntry(
        at=THEN, verb="force_complete", phase="hello", by="me", via="update", outcome=DONE
    )
    gateway.workflows["hello-world/deploy"].answers["log"] = CommandLog(entries=(entry,), dropped=3)
    head, line, dropped = run("log", "deploy").out.splitlines()
    assert head.split() == ["TIME", "COMMAND", "ELEMENT", "BY", "VIA", "RESULT", "OUTCOME"]
    assert line.split()[2:] == [
        "force-complete",
        "hello",
        "me",
        "update",
        "done",
        "Received",
        "cmd",
    ]
    assert dropped == "(3 older commands are no longer kept)"


def test_the_log_shows_force(run: Run, gateway: FakeGateway) -> None:
    entry = LogEntry(at=THEN, verb="restart", force=True, via="update", outcome=DONE)
    gateway.workflows["hello-world/deploy"].answers["log"] = CommandLog(entries=(entry,))
    assert " restart --force " in run("log", "deploy").out
