"""Deploying, changing and removing services by the command line."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from temporal_plans.client.errors import Refused
from temporal_plans.client.gateway import Ended
from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.change import FieldChange, InstanceChange, PodChange, PodEffect
from temporal_plans.domain.cluster import Reservation, ReservedResource
from temporal_plans.domain.commands import Outcome
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.service import Goal, PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.plan import (
    CommandLog,
    LogEntry,
    PlanInput,
    PlanResult,
    PlanView,
    ServiceContext,
)
from temporal_plans.messages.service import (
    ChangeView,
    Configurations,
    DeployResult,
    PodCommand,
    PodCommandResult,
    Pods,
    PodView,
    Rollback,
    Rollout,
    RunHistory,
    RunRecord,
    ServiceInput,
    TaskRecord,
    UninstallRequest,
)
from unit.cli_kit import DONE, Run
from unit.fake_gateway import THEN, Answer, Call, FakeGateway, FakeWorkflow
from unit.views import at, phase, plan, step

SERVICE = "service/hello-world"
FILE = """
name: hello-world
pods:
  hello:
    count: {{HELLO_COUNT}}
    tasks:
      server:
        goal: RUNNING
        cmd: sleep 1000
        cpus: 0.1
        memory: 32
"""

CHANGE = ChangeView(
    pods=(
        PodChange(
            pod="hello",
            fields=(
                FieldChange(path="count", before="1", after="2", restarts=False),
                FieldChange(path="tasks.server.cmd", before="sleep 1", after="sleep 2"),
            ),
            instances=(
                InstanceChange(name="hello-0", effect=PodEffect.RESTART),
                InstanceChange(name="hello-1", effect=PodEffect.ADD),
            ),
        ),
        PodChange(
            pod="world",
            instances=tuple(
                InstanceChange(name=f"world-{i}", effect=PodEffect.REMOVE) for i in range(9)
            ),
        ),
        PodChange(pod="same", instances=(InstanceChange(name="same-0", effect=PodEffect.NONE),)),
    )
)
CHANGE_TEXT = """\
hello: hello-0 restarts, hello-1 is added
    count: 1 -> 2
    tasks.server.cmd: sleep 1 -> sleep 2 (restarts)
world: world-0, world-1, world-2 and 6 more are removed
"""
REFUSED = CHANGE.but(
    problems=(
        Problem(path="pods.world", message="has 0 tasks, expected >=9 tasks", fix="keep them"),
        Problem(path="user", message="can't change"),
    )
)
REFUSED_TEXT = """\
Error: the configuration is refused:
- pods.world: has 0 tasks, expected >=9 tasks; keep them
- user: can't change
"""


def spec(count: int, cmd: str = "sleep 1") -> ServiceSpec:
    task = TaskSpec(name="server", goal=Goal.RUNNING, cmd=cmd, resource_set="server-resources")
    pod = PodSpec(
        type="hello",
        count=count,
        resource_sets=(ResourceSet(id="server-resources", cpus=0.1, memory=32),),
        tasks=(task,),
    )
    return ServiceSpec(name="hello-world", pods=(pod,))


CONFIGURATIONS = Configurations(
    configurations=(
        Configuration(id="aaa", number=1, spec=spec(1), at=THEN, by="me", reason="first"),
        Configuration(id="bbb", number=2, spec=spec(2), at=THEN, by="you"),
        Configuration(
            id="ccc", number=3, spec=spec(2, "sleep 2"), at=THEN, by="me", reason="oh", source="aaa"
        ),
    ),
    target="ccc",
)


@pytest.fixture
def svc(tmp_path: Path) -> str:
    path = tmp_path / "svc.yml"
    path.write_text(FILE)
    return str(path)


def answering(gateway: FakeGateway, **answers: Answer) -> None:
    gateway.workflows[SERVICE].answers.update(answers)


def deployed(**changes: object) -> DeployResult:
    result = DeployResult(
        config_id="ccc",
        plan="hello-world/deploy",
        outcome=Outcome(code=200, message="plan hello-world/deploy is under way"),
        number=3,
        change=CHANGE,
    )
    return result.but(**changes)


# --- deploy -------------------------------------------------------------------------------------


def test_deploy_says_what_changes(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, deploy=deployed())
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2", "--reason", "load", "--by", "me")
    text = 'Service "hello-world": configuration 3, plan hello-world/deploy is under way.\n'
    assert (ran.code, ran.out, ran.err) == (0, CHANGE_TEXT + text, "")
    [call] = gateway.told
    assert isinstance(call.argument, ServiceInput)
    assert call.argument.spec.pod("hello").count == 2
    assert (call.argument.by, call.argument.reason) == ("me", "load")
    assert call.argument.backoff == Backoff()
    assert call.argument.recovery == RecoveryPolicy()
    assert call.argument.rollout == Rollout()


def test_deploy_stays_in_the_services_pool(run: Run, gateway: FakeGateway, svc: str) -> None:
    status = gateway.workflows[SERVICE].answers["status"]
    answering(gateway, deploy=deployed(), status=status.but(pool="east"))  # type: ignore[union-attr]
    run("deploy", svc, "-e", "HELLO_COUNT=2")
    run("deploy", svc, "-e", "HELLO_COUNT=2", "--pool", "west")
    pools = [call.argument.pool for call in gateway.told if isinstance(call.argument, ServiceInput)]
    assert pools == ["east", "west"]


def test_values_say_how_failures_are_treated(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, deploy=deployed())
    values = {
        "HELLO_COUNT": "1",
        "ENABLE_BACKOFF": "true",
        "FRAMEWORK_INITIAL_BACKOFF": "7",
        "FRAMEWORK_BACKOFF_FACTOR": "3",
        "FRAMEWORK_MAX_LAUNCH_DELAY": "90",
        "ENABLE_AUTOMATIC_POD_REPLACEMENT": "true",
        "PERMANENT_FAILURE_TIMEOUT_SECS": "60",
        "MIN_REPLACE_DELAY_SECS": "5",
    }
    given = [part for name, value in values.items() for part in ("-e", f"{name}={value}")]
    assert run("deploy", svc, *given, "--canary", "2", "--max-unavailable", "3").code == 0
    [call] = gateway.told
    assert isinstance(call.argument, ServiceInput)
    assert call.argument.backoff == Backoff(
        initial=timedelta(seconds=7), factor=3, maximum=timedelta(seconds=90)
    )
    assert call.argument.recovery == RecoveryPolicy(
        permanent_failure_timeout=timedelta(seconds=60), min_replace_delay=timedelta(seconds=5)
    )
    assert call.argument.rollout == Rollout(canary=2, max_unavailable=3)


def test_values_that_are_none_are_told_together(run: Run, gateway: FakeGateway, svc: str) -> None:
    wrong = ("FRAMEWORK_INITIAL_BACKOFF=soon", "MIN_REPLACE_DELAY_SECS=later")
    ran = run("deploy", svc, "-e", "HELLO_COUNT=1", "-e", wrong[0], "-e", wrong[1])
    assert ran.code == 1
    assert all(name.partition("=")[0] in ran.err for name in wrong)
    assert gateway.told == list[Call]()


def test_a_refused_change_tells_every_reason(run: Run, gateway: FakeGateway, svc: str) -> None:
    refused = deployed(outcome=Outcome(code=417, message="no", changed=False), change=REFUSED)
    answering(gateway, deploy=refused)
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2", "--wait")
    assert (ran.code, ran.out, ran.err) == (1, "", REFUSED_TEXT)


def test_a_deployment_that_changes_nothing_says_so(
    run: Run, gateway: FakeGateway, svc: str
) -> None:
    same = deployed(outcome=Outcome(code=200, message="nothing changed", changed=False))
    answering(gateway, deploy=same)
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2")
    assert (ran.code, ran.out) == (0, 'Service "hello-world": nothing changed.\n')


def test_deploy_waits_for_the_plan(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, deploy=deployed())
    gateway.workflows["hello-world/deploy"].answers["status"] = plan(Status.COMPLETE)
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2", "--wait")
    assert ran.code == 0
    assert ran.out.endswith(" deploy COMPLETE\n")


def test_deploy_as_json(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, deploy=deployed())
    gateway.workflows["hello-world/deploy"].answers["status"] = plan(Status.COMPLETE)
    body = json.loads(run("deploy", svc, "-e", "HELLO_COUNT=2", "--json", "--wait").out)
    assert body["number"] == 3
    assert body["outcome"]["code"] == 200
    assert body["change"]["pods"][0]["instances"][1] == {"name": "hello-1", "effect": "add"}


def test_dry_run_of_a_first_installation_asks_nobody(
    run: Run, gateway: FakeGateway, svc: str
) -> None:
    del gateway.workflows[SERVICE]
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2", "--dry-run", "--canary", "1")
    assert ran.code == 0
    assert ran.out == (
        """\
hello: hello-0, hello-1 are added

deploy (serial strategy) (WAITING)
└─ hello (serial-canary strategy) (WAITING)
   ├─ hello-0:[server] (WAITING)
   └─ hello-1:[server] (PENDING)
"""
    )
    assert gateway.told == list[Call]()


def test_dry_run_of_what_would_be_refused_at_first(
    run: Run, gateway: FakeGateway, tmp_path: Path
) -> None:
    del gateway.workflows[SERVICE]
    path = tmp_path / "svc.yml"
    plans = (
        "plans:\n  deploy:\n    strategy: serial\n    phases:\n      hello:\n"
        "        pod: hello\n        strategy: {name: waves, waves: [1]}\n"
    )
    path.write_text(FILE + plans)
    ran = run("deploy", str(path), "-e", "HELLO_COUNT=2", "--dry-run", "--canary", "1")
    assert ran.code == 1
    assert "refused:\n- phases.hello.strategy: this strategy can't wait at canary gates" in ran.err


def test_dry_run_shows_changes_and_plans(run: Run, gateway: FakeGateway, svc: str) -> None:
    decommission = plan(
        Status.PENDING, phase("world-8", "serial", Status.PENDING), name="decommission"
    )
    begins = plan(Status.PENDING, phase("hello", "serial", Status.PENDING))
    view = CHANGE.but(deploy=begins, decommission=decommission)
    answering(gateway, preview=view)
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2", "--dry-run")
    assert ran.code == 0
    assert ran.out.startswith(CHANGE_TEXT + "\ndeploy (serial strategy) (PENDING)\n")
    assert "\n\ndecommission (serial strategy) (PENDING)\n└─ world-8" in ran.out
    assert gateway.told == list[Call]()


# --- diff ---------------------------------------------------------------------------------------

UNCHANGED = ChangeView(pods=(CHANGE.pods[2],))


@pytest.mark.parametrize(
    ("change", "options", "code", "out", "err"),
    [
        pytest.param(CHANGE, (), 0, CHANGE_TEXT, "", id="allowed"),
        pytest.param(CHANGE, ("--exit-code",), 1, CHANGE_TEXT, "", id="exit-code"),
        pytest.param(UNCHANGED, (), 0, "Nothing changes.\n", "", id="nothing"),
        pytest.param(UNCHANGED, ("--exit-code",), 0, "Nothing changes.\n", "", id="nothing-code"),
        pytest.param(REFUSED, (), 1, CHANGE_TEXT, REFUSED_TEXT, id="refused"),
    ],
)
def test_diff(
    run: Run,
    gateway: FakeGateway,
    svc: str,
    change: ChangeView,
    options: tuple[str, ...],
    code: int,
    out: str,
    err: str,
) -> None:
    answering(gateway, preview=change)
    ran = run("diff", svc, "-e", "HELLO_COUNT=2", *options)
    assert (ran.code, ran.out, ran.err) == (code, out, err)
    assert gateway.told == list[Call]()


def test_diff_as_json(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, preview=REFUSED)
    ran = run("diff", svc, "-e", "HELLO_COUNT=2", "--json")
    assert [problem["path"] for problem in json.loads(ran.out)["problems"]] == [
        "pods.world",
        "user",
    ]
    assert ran.code == 1


# --- configurations -----------------------------------------------------------------------------


def test_configs_marks_the_one_in_force(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, configurations=CONFIGURATIONS)
    lines = run("configs").out.splitlines()
    assert [line.split()[0] for line in lines] == ["NUMBER", "1", "2", "*"]
    assert lines[1].split()[-3:] == ["me", "first", "aaa"]
    assert lines[3].split()[-5:] == ["back", "to", "1:", "oh", "ccc"]
    listed = json.loads(run("config", "list", "--json").out)
    assert [(one["number"], one["target"]) for one in listed] == [(1, False), (2, False), (3, True)]


def test_config_show_is_what_it_says(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, configurations=CONFIGURATIONS)
    assert "cmd: sleep 2" in run("config", "show").out
    assert "cmd: sleep 1" in run("config", "show", "2").out
    shown = ServiceSpec.model_validate_json(run("config", "show", "aaa", "--json").out)
    assert shown == spec(1)
    ran = run("config", "show", "9")
    assert (ran.code, ran.err) == (1, "Error: there is no configuration '9'; use one of: 1, 2, 3\n")


def test_config_diff(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, configurations=CONFIGURATIONS)
    out = "hello:\n    count: 1 -> 2\n"
    assert run("config", "diff", "1", "2").out == out
    command = "    tasks.server.cmd: sleep 1 -> sleep 2 (restarts)\n"
    assert run("config", "diff", "2").out == f"hello:\n{command}"
    assert run("config", "diff", "2", "2").out == "Their pods do not differ.\n"


@pytest.mark.parametrize(
    ("arguments", "wanted"), [((), "bbb"), (("1",), "aaa"), (("aaa",), "aaa")], ids=str
)
def test_rollback_is_to_the_one_before_unless_said(
    run: Run, gateway: FakeGateway, arguments: tuple[str, ...], wanted: str
) -> None:
    answering(gateway, configurations=CONFIGURATIONS, rollback=deployed(number=4))
    ran = run("rollback", *arguments, "--reason", "errors", "--by", "me", "--canary", "1")
    assert ran.code == 0
    assert "configuration 4, plan hello-world/deploy is under way" in ran.out
    request = Rollback(config=wanted, rollout=Rollout(canary=1), by="me", reason="errors")
    assert gateway.told == [Call(SERVICE, "rollback", request)]


def test_there_may_be_none_before(run: Run, gateway: FakeGateway) -> None:
    first = Configurations(configurations=CONFIGURATIONS.configurations[:1], target="aaa")
    answering(gateway, configurations=first)
    ran = run("rollback")
    assert ran.code == 1
    assert "no configuration before 1, which is in force" in ran.err
    assert gateway.told == list[Call]()


# --- uninstall ----------------------------------------------------------------------------------


def pod_view(**changes: object) -> PodView:
    status = TaskStatus(
        task_id="t__1", name="hello-0-server", state=TaskState.RUNNING, sequence=1, at=THEN
    )
    record = TaskRecord(
        task_id="t__1",
        name="hello-0-server",
        pod="hello",
        index=0,
        task="server",
        goal="RUNNING",
        resource_set="server-resources",
        agent="a1",
        hostname="h1",
        config_id="ccc",
        owner="",
        step="",
        launched=THEN,
        status=status,
    )
    volume = ReservedResource(id="v", set="", kind="volume", value=100, name="data")
    reservation = Reservation(
        id="r",
        owner=SERVICE,
        pod="hello",
        index=0,
        agent="a1",
        hostname="h1",
        resources=(volume,),
        created=THEN,
    )
    view = PodView(
        name="hello-0",
        type="hello",
        index=0,
        agent="a1",
        reservation=reservation,
        tasks=(record,),
    )
    return view.but(**changes)


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    from io import StringIO

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))


def test_uninstall_needs_a_yes_where_nobody_can_be_asked(run: Run, gateway: FakeGateway) -> None:
    ran = run("uninstall", "-s", "hello-world")
    assert ran.code == 2
    assert "say --yes" in ran.err
    assert gateway.told == list[Call]()


@pytest.mark.parametrize(("answer", "code", "told"), [("y\n", 0, 1), ("n\n", 1, 0), ("\n", 1, 0)])
def test_uninstall_names_what_is_destroyed_and_asks(
    run: Run,
    gateway: FakeGateway,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    code: int,
    told: int,
) -> None:
    answering(gateway, uninstall=DONE, pods=Pods(pods=(pod_view(),)))
    on_a_terminal(monkeypatch, answer)
    ran = run("uninstall", "--reason", "moved", "--by", "me")
    assert "- pod hello-0 on a1, running server, with the data of data (100 MB)\n" in ran.out
    assert ran.code == code
    request = UninstallRequest(by="me", reason="moved")
    assert gateway.told == [Call(SERVICE, "uninstall", request)][:told]


def test_uninstall_waits_until_the_service_is_gone(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, uninstall=DONE)
    gateway.workflows["hello-world/deploy"].answers["status"] = plan(Status.COMPLETE)
    gateway.ends_with["hello-world/deploy"] = SERVICE
    ran = run("uninstall", "--yes", "--wait")
    assert ran.code == 0
    assert ran.out.endswith(" deploy COMPLETE\n")
    assert gateway.workflows[SERVICE].ended is Ended.COMPLETED


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
        Refused("pod helo-0 not found; did you mean hello-0?"),
        PodCommandResult(
            pod="helo-0",
            outcome=Outcome(
                code=404, message="pod helo-0 not found; did you mean hello-0?", changed=False
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
    assert dropped == "(4 older ones are no longer kept)"
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


def test_history_of_nothing(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, runs=RunHistory())
    assert run("history", "deploy").out == "No runs yet.\n"
    assert run("history", "dploy").err.endswith("has no plan 'dploy'; did you mean deploy?\n")


def expected(gateway: FakeGateway) -> None:
    """Two runs of deploy took 100 s and 140 s, one step after the other; the third has begun."""
    begun = PlanInput(
        name="deploy",
        phases=(),
        context=ServiceContext(
            service="hello-world", workflow_id=SERVICE, plan="deploy", priority=0
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
    answering(gateway, runs=Refused("no query runs: the worker is of an older version"))
    assert run("show", "deploy").out.splitlines()[0] == "deploy (serial strategy) (IN_PROGRESS)"
    assert json.loads(run("show", "deploy", "--json").out)["expected_seconds_left"] is None
