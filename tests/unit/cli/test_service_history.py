"""The log, the history and the expected times of a service by the command line."""

import json
from datetime import timedelta

import pytest

from builders.plan_views import at, phase, plan, step
from temporal_plans.client.errors import Refused
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.owners.runs import RunHistory, RunRecord
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.owners import OwnerResult
from temporal_plans.messages.plan_views import PlanView, StepView
from temporal_plans.messages.plans import (
    CommandLog,
    EngineInput,
    LogEntry,
    OwnerContext,
    PlanInput,
    PlanResult,
)
from unit.cli.kit import DONE, Run
from unit.cli.service_answers import SERVICE, answering
from unit.fake_gateway import THEN, FakeGateway, FakeWorkflow

# --- log, history and expectations --------------------------------------------------------------


def test_log_of_the_service_itself(run: Run, gateway: FakeGateway) -> None:
    entry = LogEntry(
        at=THEN, verb="restart_pod my_pod-0", reason="stuck", by="me", via="update", outcome=DONE
    )
    answering(gateway, log=CommandLog(entries=(entry,)))
    _, line = run("log").out.splitlines()
    assert line.split()[2:6] == ["restart-pod", "my_pod-0", "me", "update"]
    assert "stuck" in line


def ran_before(number: int, status: Status = Status.COMPLETE, **changes: object) -> RunRecord:
    record = RunRecord(
        plan="deploy",
        run=number,
        started=THEN,
        ended=THEN + timedelta(minutes=2),
        status=status,
        config=number,
        by="me",
        reason="load",
        what="hello: hello-0 restarts",
        run_id=f"run-{number}",
    )
    return record.but(**changes)


def test_history_of_a_service(run: Run, gateway: FakeGateway) -> None:
    runs = (
        ran_before(1),
        ran_before(2, Status.IN_PROGRESS, superseded=True),
        ran_before(3, Status.IN_PROGRESS, ended=None),
        ran_before(1, plan="backup"),
    )
    answering(gateway, runs=RunHistory(runs=runs, dropped=4))
    head, *lines, dropped = run("history").out.splitlines()
    assert head.split() == [
        *("PLAN", "RUN", "CONFIG", "STARTED", "TOOK", "RESULT", "BY", "WHAT", "REASON")
    ]
    assert "2m 00s  COMPLETE                 me  hello: hello-0 restarts  load" in lines[0]
    assert "IN_PROGRESS, superseded" in lines[1]
    assert "IN_PROGRESS, open" in lines[2]
    assert dropped == "(4 older runs are no longer kept)"
    of_plan = json.loads(run("history", "deploy", "--json").out)["runs"]
    assert [one["run"] for one in of_plan] == [1, 2, 3]


def test_history_of_a_plan_without_a_service(run: Run, gateway: FakeGateway) -> None:
    done = PlanResult(status=Status.COMPLETE, view=plan(Status.COMPLETE, name="nightly"))
    gateway.workflows["nightly"] = FakeWorkflow(
        "Plan", ended=Ended.TERMINATED, results={"first": done}
    )
    lines = run("history", "nightly").out.splitlines()[1:]
    assert [line.split()[:2] for line in lines] == [["nightly", "1"], ["nightly", "2"]]
    assert "COMPLETE" in lines[0]
    assert lines[1].endswith("terminated")


def test_a_plan_that_waited_is_begun_by_its_command(run: Run, gateway: FakeGateway) -> None:
    waited = ran_before(1, plan="backup", by="", reason="", what="waits to be started")
    answering(gateway, runs=RunHistory(runs=(waited,)))
    begun = LogEntry(
        at=THEN + timedelta(seconds=90),
        verb="start",
        parameters={"LABEL": "a"},
        by="you",
        reason="asked for",
        via="update",
        outcome=DONE,
    )
    before = begun.but(at=THEN - timedelta(seconds=1), by="an earlier run's")
    log = CommandLog(entries=(before, begun))
    gateway.workflows["hello-world/backup"] = FakeWorkflow(
        "Plan", {"log": log}, ended=Ended.COMPLETED
    )
    line = run("history").out.splitlines()[1]
    assert "30s   COMPLETE  you  start LABEL=a  asked for" in line


def test_an_uninstall_is_not_expected_to_be_like_a_deploy(run: Run, gateway: FakeGateway) -> None:
    expected(gateway)
    other = phase("kill-tasks", "parallel", Status.PENDING, step("kill", Status.PENDING))
    gateway.workflows["hello-world/deploy"].answers["status"] = plan(Status.IN_PROGRESS, other)
    assert "left" not in run("show", "deploy").out


@pytest.mark.parametrize(
    "state",
    [
        step("hello-0:[server]", Status.DELAYED, attempt=2, started=THEN),
        step("hello-0:[server]", Status.STARTING, attempt=3, started=THEN),
    ],
    ids=["delayed", "retried"],
)
def test_a_plan_whose_step_fails_promises_no_end(
    run: Run, gateway: FakeGateway, state: StepView
) -> None:
    expected(gateway)
    answers = gateway.workflows["hello-world/deploy"].answers
    well = state.but(attempt=1, status=Status.STARTING)
    for first, promised in ((well, True), (state, False)):
        steps = (first, step("hello-1:[server]", Status.PENDING))
        hello = phase("hello", "serial", Status.IN_PROGRESS, *steps)
        answers["status"] = plan(Status.IN_PROGRESS, hello)
        assert ("left" in run("show", "deploy").out) is promised


def test_history_of_nothing(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, runs=RunHistory())
    assert run("history", "deploy").out == "No runs yet.\n"
    assert run("history", "dploy").err.endswith("has no plan 'dploy'; did you mean deploy?\n")


def expected(gateway: FakeGateway) -> None:
    """Two runs of deploy took 100 s and 140 s, one step after the other; the third has begun."""
    begun = PlanInput(
        name="deploy",
        phases=(),
        engine=EngineInput(
            context=OwnerContext(owner="hello-world", workflow_id=SERVICE, plan="deploy")
        ),
    )

    def view(seconds: float) -> PlanView:
        steps = [
            step(f"hello-{i}:[server]", Status.COMPLETE, started=at(0), finished=at(seconds / 2))
            for i in range(2)
        ]
        return plan(Status.COMPLETE, phase("hello", "serial", Status.COMPLETE, *steps))

    deploy = gateway.workflows["hello-world/deploy"]
    deploy.input = begun
    deploy.results = {
        f"run-{number}": PlanResult(status=Status.COMPLETE, view=view(seconds))
        for number, seconds in ((1, 100), (2, 140))
    }
    waits = [step(f"hello-{i}:[server]", Status.PENDING) for i in range(2)]
    deploy.answers["status"] = plan(
        Status.IN_PROGRESS, phase("hello", "serial", Status.IN_PROGRESS, *waits)
    )
    answering(gateway, runs=RunHistory(runs=(ran_before(1), ran_before(2))))


def test_show_tells_how_long_it_will_take(run: Run, gateway: FakeGateway) -> None:
    expected(gateway)
    first = run("show", "deploy").out.splitlines()[0]
    assert first == "deploy (serial strategy) (IN_PROGRESS)  about 2m left"
    assert run("show").out.splitlines()[0] == first
    assert json.loads(run("show", "deploy", "--json").out)["expected_seconds_left"] == 120


def test_nothing_is_told_when_nothing_is_known(run: Run, gateway: FakeGateway) -> None:
    expected(gateway)
    answering(
        gateway, runs=Refused.of(Code.FAILED, "no query runs: the worker is of an older version")
    )
    assert run("show", "deploy").out.splitlines()[0] == "deploy (serial strategy) (IN_PROGRESS)"
    assert json.loads(run("show", "deploy", "--json").out)["expected_seconds_left"] is None


# --- a service that was uninstalled ---------------------------------------------------------------


def uninstalled(gateway: FakeGateway, ended: Ended = Ended.COMPLETED) -> None:
    entry = LogEntry(at=THEN, verb="uninstall", reason="moved", by="me", via="update", outcome=DONE)
    log, runs = CommandLog(entries=(entry,)), RunHistory(runs=(ran_before(1), ran_before(2)))
    result = OwnerResult(name="hello-world", log=log, runs=runs)
    gateway.workflows[SERVICE] = FakeWorkflow(
        "Service", {"log": log, "runs": runs}, ended=ended, result=result
    )
    view = plan(Status.COMPLETE, phase("kill", "serial", Status.COMPLETE))
    gateway.workflows["hello-world/deploy"] = FakeWorkflow(
        "Plan",
        {"log": CommandLog(), "status": view},
        ended=Ended.COMPLETED,
        result=PlanResult(status=Status.COMPLETE, view=view),
    )


@pytest.mark.parametrize("ended", [Ended.COMPLETED, Ended.TERMINATED])
def test_what_is_left_of_a_service(run: Run, gateway: FakeGateway, ended: Ended) -> None:
    """The same commands as before, as long as Temporal keeps it."""
    uninstalled(gateway, ended)
    assert "uninstall" in run("log", "-s", "hello-world").out
    assert "moved" in run("log", "-s", "hello-world").out
    assert len(run("history", "-s", "hello-world").out.splitlines()) == 3
    assert len(run("history", "deploy", "-s", "hello-world").out.splitlines()) == 3
    assert "kill (serial strategy) (COMPLETE)" in run("show", "deploy", "-s", "hello-world").out
    assert "kill (serial strategy) (COMPLETE)" in run("show", "-s", "hello-world").out
    assert "No commands" in run("log", "deploy", "-s", "hello-world").out
    refused = run("explain", "-s", "hello-world")
    assert (refused.code, "`temporal plan log -s hello-world`" in refused.err) == (1, True)


def test_what_is_gone_of_a_service(run: Run, gateway: FakeGateway) -> None:
    del gateway.workflows[SERVICE]
    for command in ("log", "history", "show"):
        ran = run(command, "-s", "hello-world")
        assert (ran.code, "service 'hello-world' not found" in ran.err) == (1, True)
