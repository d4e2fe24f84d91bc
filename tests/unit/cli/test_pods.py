"""Pods of services by the command line."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from builders.pools import agent_view, reservation
from builders.tasks import record
from temporal_plans.client.errors import Refused
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.explain import Explanation, Explanations
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Code
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import (
    PodCommand,
    PodCommandResult,
    Pods,
    Tasks,
)
from unit.cli.kit import DONE, Run
from unit.cli.service_answers import SERVICE, answering, pod_view
from unit.fake_gateway import Answer, Call, FakeGateway, FakeWorkflow

# --- pods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "update", "text"),
    [
        ("restart", "restart_pod", "is being restarted"),
        ("replace", "replace_pod", "is being replaced"),
        ("pause", "pause_pod", "is being paused"),
        ("resume", "resume_pod", "is being resumed"),
    ],
)
def test_pod_commands(run: Run, gateway: FakeGateway, command: str, update: str, text: str) -> None:
    result = PodCommandResult(pod="hello-0", tasks=("hello-0-server",), outcome=DONE)
    answering(gateway, **{update: result})
    ran = run("pod", command, "hello-0", "--reason", "why", "--by", "me")
    assert (ran.code, ran.out) == (0, f'Pod "hello-0" {text}: hello-0-server.\n')
    request = PodCommand(pod="hello-0", by="me", reason="why")
    assert gateway.told == [Call(SERVICE, update, request)]
    body = json.loads(run("pod", command, "hello-0", "--json").out)
    assert (body["pod"], body["tasks"]) == ("hello-0", ["hello-0-server"])


@pytest.mark.parametrize("interrupted", [True, False])
def test_a_pod_command_warns_when_recovery_is_stopped(
    run: Run, gateway: FakeGateway, interrupted: bool
) -> None:
    result = PodCommandResult(pod="hello-0", tasks=("hello-0-server",), outcome=DONE)
    answering(gateway, restart_pod=result)
    idle = Explanation(
        status=Status.COMPLETE,
        cause=Cause.COMPLETE,
        text="it is complete",
        remedy=("continue",) if interrupted else (),
    )
    answers: dict[str, Answer] = {
        "explain": Explanations(status=Status.COMPLETE, explanations=(idle,))
    }
    gateway.workflows["hello-world/recovery"] = FakeWorkflow("Plan", answers)
    out = run("pod", "restart", "hello-0").out
    assert (
        "Warning: plan recovery is interrupted, so no task is launched yet." in out
    ) is interrupted
    assert ("temporal plan continue recovery -s hello-world" in out) is interrupted


@pytest.mark.parametrize("command", ["pause", "resume"])
def test_some_tasks_of_a_pod(run: Run, gateway: FakeGateway, command: str) -> None:
    result = PodCommandResult(pod="hello-0", tasks=("hello-0-a",), outcome=DONE)
    answering(gateway, **{f"{command}_pod": result})
    assert run("pod", command, "hello-0", "-t", "a", "--tasks", "hello-0-b").code == 0
    [call] = gateway.told
    assert isinstance(call.argument, PodCommand)
    assert call.argument.tasks == ("a", "hello-0-b")


@pytest.mark.parametrize(
    "answer",
    [
        Refused.of(Code.NOT_FOUND, "pod helo-0 not found; did you mean hello-0?"),
        PodCommandResult(
            pod="helo-0",
            outcome=Outcome(
                result=Result.REFUSED, message="pod helo-0 not found; did you mean hello-0?"
            ),
        ),
    ],
    ids=["refused", "answered"],
)
def test_an_unknown_pod(run: Run, gateway: FakeGateway, answer: Answer) -> None:
    answering(gateway, restart_pod=answer)
    ran = run("pod", "restart", "helo-0")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error: pod helo-0 not found; did you mean hello-0?\n"


def test_pods_show_what_was_done_to_them(run: Run, gateway: FakeGateway) -> None:
    paused = pod_view(shown={"hello-0-server": "PAUSED"}, wanted=False)
    answering(gateway, pods=Pods(pods=(paused,)))
    assert run("pods").out.splitlines()[1].endswith("server PAUSED (to be removed)")


def test_pods_show_ports_restarts_and_age(run: Run, gateway: FakeGateway) -> None:
    port = ReservedResource(id="p", set="server", kind="port", value=31005, name="http")
    held = reservation("hello", 0, owner=SERVICE, resources=(port,)).but(
        created=datetime.now(UTC) - timedelta(hours=2, minutes=3, seconds=1)
    )
    tasks = (record("hello", 0, "server", launches=3), record("hello", 0, "side"))
    answering(gateway, pods=Pods(pods=(pod_view(reservation=held, tasks=tasks),)))
    head, line = run("pods").out.splitlines()
    assert head.split() == ["POD", "AGENT", "PORTS", "RESTARTS", "AGE", "TASKS"]
    assert line.split()[2:6] == ["http:31005", "2", "2h", "03m"]


# --- tasks --------------------------------------------------------------------------------------


def test_tasks_show_earlier_launches_when_asked(run: Run, gateway: FakeGateway) -> None:
    failed = record("hello", 0, "server", TaskState.FAILED, task_id="t__1", message="exit code 3")
    newest = record("hello", 0, "server", task_id="t__2").after(failed)
    answering(gateway, tasks=Tasks(tasks=(newest,)))
    assert [line.split()[1] for line in run("tasks").out.splitlines()[1:]] == ["RUNNING"]
    lines = run("tasks", "--all").out.splitlines()
    assert [line.split()[1] for line in lines[1:]] == ["RUNNING", "FAILED"]
    assert "t__1" in lines[2]
    assert lines[2].endswith("exit code 3")


@pytest.mark.parametrize("state", [AgentState.UNREACHABLE, AgentState.LOST])
def test_pods_name_an_agent_that_does_not_answer(
    run: Run, gateway: FakeGateway, state: AgentState
) -> None:
    """What its tasks do is not known then."""
    answering(gateway, pods=Pods(pods=(pod_view(),)))

    def pool(state: AgentState) -> FakeWorkflow:
        status = PoolStatus(name="default", agents=(agent_view("a1", state),))
        return FakeWorkflow("Pool", {"status": status})

    gateway.workflows["pool/default"] = pool(AgentState.ALIVE)
    assert "(" not in run("pods").out
    gateway.workflows["pool/default"] = pool(state)
    assert f"a1 ({state})" in run("pods").out
