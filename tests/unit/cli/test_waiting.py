"""``--wait``, ``--watch`` and ``--timeout``: how long commands take, and how they end."""

import json

import pytest

from builders.plan_views import plan, reference_plan
from builders.tasks import record
from temporal_plans.client.reading.pod_arrival import has_arrived
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.pod_verb import PodVerb
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.services import PodCommandResult, Pods, PodView
from unit.cli.kit import DONE, Run
from unit.cli.service_answers import SERVICE, answering, pod_view
from unit.fake_gateway import THEN, Call, FakeGateway

PLAN = "hello-world/deploy"


@pytest.mark.parametrize("command", ["start", "restart"])
def test_a_command_waits_for_the_plan(run: Run, gateway: FakeGateway, command: str) -> None:
    gateway.workflows[PLAN].answers["status"] = plan(Status.COMPLETE)
    ran = run(command, "deploy", "--wait", "--timeout", "1m")
    assert ran.code == 0
    assert ran.out.endswith(" deploy COMPLETE\n")
    gateway.workflows[PLAN].answers["status"] = plan(Status.ERROR)
    assert run(command, "deploy", "--wait").code == 1


@pytest.mark.parametrize(
    "command",
    [
        ("start", "deploy", "--wait"),
        ("restart", "deploy", "--wait", "--json"),
        ("show", "deploy", "--watch"),
    ],
    ids=" ".join,
)
def test_waiting_ends_with_the_timeout(
    run: Run, gateway: FakeGateway, command: tuple[str, ...]
) -> None:
    gateway.workflows[PLAN].answers["status"] = reference_plan()  # IN_PROGRESS
    ran = run(*command, "--timeout", "100ms")
    assert ran.code == 1
    text = "plan hello-world/deploy has not come to its end within 0.1s"
    assert text in ran.err
    assert "`temporal plan explain hello-world/deploy` says what it waits for" in ran.err


@pytest.mark.parametrize(
    "command",
    [("start", "deploy"), ("show", "deploy"), ("pod", "restart", "hello-0")],
    ids=" ".join,
)
def test_a_timeout_needs_something_to_limit(run: Run, command: tuple[str, ...]) -> None:
    ran = run(*command, "--timeout", "1m")
    assert ran.code == 2
    assert "whose waiting it limits" in ran.err


@pytest.mark.parametrize("text", ["0", "soon", "-1s"])
def test_what_is_no_timeout_is_a_usage_error(run: Run, gateway: FakeGateway, text: str) -> None:
    ran = run("start", "deploy", "--wait", f"--timeout={text}")
    assert ran.code == 2
    assert gateway.told == list[Call]()


# --- pods ---------------------------------------------------------------------------------------


def launched(task_id: str, state: TaskState = TaskState.RUNNING, **fields: object) -> TaskRecord:
    made = record("hello", 0, "server", task_id=task_id)
    status = TaskStatus(task_id=task_id, name=made.name, state=state, sequence=1, at=THEN)
    return made.but(status=status).but(**fields)


def of(*records: TaskRecord, shown: str = "RUNNING") -> PodView:
    return pod_view(tasks=records, shown={one.name: shown for one in records})


def job(task_id: str, state: TaskState = TaskState.RUNNING) -> TaskRecord:
    return launched(task_id, state, goal=Goal.ONCE)


KILLED = {"hello-0-server": "old"}
KILL, ENDED = TaskState.KILLED, TaskState.FINISHED


@pytest.mark.parametrize(
    ("pod", "replaced", "paused", "expected"),
    [
        pytest.param(of(launched("new")), KILLED, False, True, id="runs-again"),
        pytest.param(of(launched("old")), KILLED, False, False, id="the-launch-before"),
        pytest.param(of(launched("new", TaskState.STARTING)), KILLED, False, False, id="starts"),
        pytest.param(of(launched("new", check=True)), KILLED, False, False, id="is-not-ready"),
        pytest.param(of(), KILLED, False, False, id="is-not-launched"),
        pytest.param(of(launched("old")), {}, False, True, id="nothing-was-killed"),
        pytest.param(of(launched("new")), KILLED, True, False, id="is-not-paused"),
        pytest.param(of(launched("new"), shown="PAUSED"), KILLED, True, True, id="is-paused"),
        pytest.param(of(job("old")), KILLED, False, False, id="what-was-to-end-is-alive"),
        pytest.param(of(job("old", KILL)), KILLED, False, True, id="what-was-to-end-was-killed"),
        pytest.param(of(job("old", KILL)), KILLED, True, True, id="nor-is-it-paused-again"),
        pytest.param(of(job("new")), KILLED, False, True, id="a-plan-has-launched-it"),
        pytest.param(of(job("new", TaskState.STARTING)), KILLED, False, False, id="and-it-starts"),
        pytest.param(of(job("new", ENDED)), KILLED, False, True, id="and-it-has-finished"),
        pytest.param(of(job("old", KILL)), {}, False, True, id="was-killed-before"),
        pytest.param(of(launched("old", KILL, retired=True)), KILLED, False, True, id="retired"),
        pytest.param(of(launched("old", KILL)), KILLED, False, False, id="is-to-be-recovered"),
    ],
)
def test_whether_a_pod_has_arrived(
    pod: PodView, replaced: dict[str, str], paused: bool, expected: bool
) -> None:
    assert has_arrived(pod, replaced, paused=paused) is expected


def test_a_pod_command_waits_for_its_effect(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = PodCommandResult(pod="hello-0", tasks=("hello-0-server",), outcome=DONE)
    answering(gateway, restart_pod=result, pods=Pods(pods=(of(launched("old")),)))
    told = gateway.update

    async def update(*arguments: object) -> object:
        answering(gateway, pods=Pods(pods=(of(launched("new")),)))
        return await told(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(gateway, "update", update)
    ran = run("pod", "restart", "hello-0", "--wait")
    assert (ran.code, ran.out) == (
        0,
        'Pod "hello-0" is being restarted: hello-0-server.\nPod "hello-0" runs.\n',
    )


def test_what_is_not_launched_again_is_not_waited_for(run: Run, gateway: FakeGateway) -> None:
    result = PodCommandResult(pod="hello-0", tasks=("hello-0-server",), outcome=DONE)
    answering(gateway, restart_pod=result, pods=Pods(pods=(of(job("old", KILL)),)))
    ran = run("pod", "restart", "hello-0", "--wait", "--timeout", "10s")
    assert (ran.code, ran.out.splitlines()[1:]) == (
        0,
        ["Launched again only by a plan that has them: hello-0-server."],
    )


def test_a_pod_command_waits_no_longer_than_it_may(run: Run, gateway: FakeGateway) -> None:
    result = PodCommandResult(pod="hello-0", tasks=("hello-0-server",), outcome=DONE)
    answering(gateway, pause_pod=result, pods=Pods(pods=(of(launched("old")),)))
    ran = run("pod", "pause", "hello-0", "--wait", "--timeout", "50ms", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["pod"] == "hello-0"
    assert 'pod "hello-0" has not come to its end' in ran.err
    assert [call.name for call in gateway.told if call.to == SERVICE] == [PodVerb.PAUSE.value]


def test_a_pod_command_that_changes_nothing_is_not_waited_for(
    run: Run, gateway: FakeGateway
) -> None:
    same = PodCommandResult(
        pod="hello-0", outcome=Outcome(result=Result.ALREADY, message="it is paused already")
    )
    answering(gateway, pause_pod=same, pods=Pods(pods=(of(launched("old")),)))
    assert run("pod", "pause", "hello-0", "--wait").code == 1
