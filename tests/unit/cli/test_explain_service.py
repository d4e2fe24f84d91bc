"""`explain` without a plan: what is wrong with a service."""

import json

import pytest

from builders.clock import NOW
from builders.pools import agent_view
from builders.services import service, service_status
from builders.tasks import record
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.plans.explain import Explanation, Explanations, PendingWork
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus
from temporal_plans.domain.values.refusal import Code, Refusal
from temporal_plans.messages.plans import CommandLog, LogEntry
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import Configurations, Pods
from unit.cli.kit import Run
from unit.cli.service_answers import SERVICE, answering, pod_view
from unit.fake_gateway import Answer, FakeGateway, FakeWorkflow

_RESERVATION = pod_view().reservation
assert _RESERVATION is not None

HEALTHY = pod_view(
    reservation=_RESERVATION.but(agent="a1"),
    tasks=(
        record("hello", 0, "server", config="ccc", task_id="t__1", step="").but(
            status=TaskStatus(
                task_id="t__1", name="hello-0-server", state=TaskState.RUNNING, sequence=1, at=NOW
            )
        ),
    ),
)


def task_at(state: TaskState, message: str = "", ready: bool | None = None) -> Pods:
    [task] = HEALTHY.tasks
    assert task.status is not None
    status = task.status.but(state=state, message=message, ready=ready)
    return Pods(pods=(HEALTHY.but(tasks=(task.but(status=status),)),))


@pytest.fixture(autouse=True)
def a_healthy_service(gateway: FakeGateway) -> None:
    status = service_status("hello-world", "deploy").but(tasks=1, running=1)
    answering(
        gateway,
        status=status,
        pods=Pods(pods=(HEALTHY,)),
        log=CommandLog(),
        configurations=Configurations(target="ccc"),
    )
    pool(gateway, AgentState.ALIVE)


def pool(gateway: FakeGateway, state: AgentState) -> None:
    agents = (agent_view("a1").but(state=state),)
    gateway.workflows["pool/default"] = FakeWorkflow(
        "Pool", {"status": PoolStatus(name="default", agents=agents)}
    )


def explained(gateway: FakeGateway, plan: str, *explanations: Explanation) -> None:
    record = service_status("hello-world", plan).plans[0].but(open=True, run=1)
    answering(gateway, status=service_status("hello-world", record).but(tasks=1, running=1))
    gateway.workflows[f"hello-world/{plan}"] = FakeWorkflow(
        "Plan",
        {"explain": Explanations(status=Status.IN_PROGRESS, explanations=explanations)},
    )


def test_nothing_is_wrong(run: Run) -> None:
    out = run("explain").out
    assert out == "Nothing is wrong with hello-world: no plan is under way, 1 of 1 tasks run.\n"
    assert json.loads(run("explain", "--json").out)["findings"] == []


STRANGER = TaskRef(task_id="hello-world__hello-0-server__9", agent="a1", queue="q")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        pytest.param(
            {"status": service_status("hello-world", "deploy").but(strangers=(STRANGER,))},
            [
                "- task hello-0-server: hello-world__hello-0-server__9 runs on agent a1, and this",
                "temporal plan audit --end hello-world__hello-0-server__9",
            ],
            id="a-task-from-after-the-backup",
        ),
        pytest.param(
            {"status": service_status("hello-world", "deploy").but(errors=("cpus: too many",))},
            [
                "- configuration: the newest one was refused, number 1 is in force: cpus: too many",
                "temporal plan rollback 1 -s hello-world",
            ],
            id="configuration",
        ),
        pytest.param(
            {"pods": task_at(TaskState.FAILED, "exit code 7\nno such file")},
            [
                "- pod hello-0: task server is FAILED: exit code 7 no such file",
                "temporal plan logs hello-0-server --stderr --tail 20 -s hello-world",
            ],
            id="failed",
        ),
        pytest.param(
            {"pods": task_at(TaskState.RUNNING, "the readiness check fails: exit code 1", False)},
            ["- pod hello-0: task server is not ready: the readiness check fails: exit code 1"],
            id="not-ready",
        ),
        pytest.param(
            {"pods": Pods(pods=(HEALTHY.but(shown={"hello-0-server": "PAUSED"}),))},
            ["task server is PAUSED", "temporal plan pod resume hello-0 -s hello-world"],
            id="paused",
        ),
        pytest.param(
            {
                "log": CommandLog(
                    entries=(
                        LogEntry(
                            at=NOW,
                            verb="recovery",
                            via="signal",
                            outcome=Outcome.refusing(Refusal.of(Code.INVALID, "the recoverer x")),
                            trace='File "mine.py", line 7, in x',
                        ),
                    )
                )
            },
            ["- own code (recovery): the recoverer x", 'File "mine.py", line 7, in x'],
            id="code",
        ),
    ],
)
def test_what_is_wrong(
    run: Run, gateway: FakeGateway, answers: dict[str, Answer], said: list[str]
) -> None:
    answering(gateway, **answers)
    out = run("explain", "-s", "hello-world", "-v").out
    assert all(text in out for text in said), out


def test_tracebacks_need_v(run: Run, gateway: FakeGateway) -> None:
    explained(
        gateway,
        "deploy",
        Explanation(
            phase="p", step="s", status=Status.ERROR, cause=Cause.ERROR, text="x", trace="line 7"
        ),
    )
    assert "line 7" not in run("explain").out
    assert "-v shows where" in run("explain", "deploy").out
    assert "line 7" in run("explain", "-v").out
    assert "line 7" in run("explain", "deploy", "--verbose").out


def test_an_agent_that_does_not_answer(run: Run, gateway: FakeGateway) -> None:
    pool(gateway, AgentState.LOST)
    out = run("explain").out
    assert "pod hello-0 has its place and its data (volume data) on agent a1, which is LOST" in out
    assert "temporal plan pod replace hello-0 -s hello-world" in out
    assert "temporal plan remove-agent a1 --force" in out


def test_a_recovery_that_waits_for_a_lost_agent(run: Run, gateway: FakeGateway) -> None:
    waits = Explanation(
        phase="hello-0:[server]",
        step="hello-0:[server]",
        status=Status.PREPARED,
        cause=Cause.OFFER,
        text="waits for resources",
        pod="hello-0",
    )
    explained(gateway, "recovery", waits)
    alive = run("explain", "recovery").out
    assert "start that agent again" not in alive
    assert "pod hello-0 is bound to agent a1 by its reservation and its data (volume data)" in alive
    assert "without it, on another agent, with an empty volume: temporal plan pod replace" in alive
    pool(gateway, AgentState.LOST)
    out = run("explain", "recovery").out
    assert "which is LOST; start that agent again" in out
    assert "temporal plan pod replace hello-0 -s hello-world" in out
    assert "temporal plan remove-agent a1 --force" in out


def test_a_recovery_that_is_stopped_and_has_nothing_to_do(run: Run, gateway: FakeGateway) -> None:
    idle = Explanation(
        status=Status.COMPLETE, cause=Cause.COMPLETE, text="it is interrupted", remedy=("continue",)
    )
    explained(gateway, "recovery", idle)
    record = service_status("hello-world", "recovery").plans[0]
    complete = record.but(open=True, run=1, status=Status.COMPLETE)
    answering(gateway, status=service_status("hello-world", complete).but(tasks=1, running=1))
    out = run("explain").out
    assert "it is interrupted" in out
    assert "to continue: temporal plan continue recovery -s hello-world" in out
    explained(gateway, "recovery", idle.but(remedy=()))
    answering(gateway, status=service_status("hello-world", complete).but(tasks=1, running=1))
    assert run("explain").out.startswith("Nothing is wrong")


def test_a_task_that_fails_again_and_again(run: Run, gateway: FakeGateway) -> None:
    """The first canary crashes: its output, and the way back, are named."""
    crashing = Explanation(
        phase="hello",
        step="hello-0:[server]",
        status=Status.DELAYED,
        cause=Cause.BACKOFF,
        text="failed and is retried later: exit code 1",
        tasks=("hello-0-server",),
        attempt=3,
    )
    explained(gateway, "deploy", crashing)
    out = run("explain", "deploy").out
    assert "temporal plan logs hello-0-server --stderr --tail 20 -s hello-world" in out
    assert "rollback" not in out

    kept = tuple(
        Configuration(id=id, number=number, spec=service(), at=NOW)
        for number, id in ((1, "bbb"), (2, "ccc"))
    )
    answering(gateway, configurations=Configurations(target="ccc", configurations=kept))
    out = run("explain", "deploy").out
    assert "to return to the configuration before: temporal plan rollback -s hello-world" in out


def test_an_activity_of_the_service_that_is_retried(run: Run, gateway: FakeGateway) -> None:
    check = PendingWork(type="check_change", attempt=4, started=True, last_failure="no such table")
    gateway.work[SERVICE] = [check]
    out = run("explain").out
    assert "- activity check_change: is retried, attempt 4, the attempt before failed" in out
