"""Deploying, changing and removing services by the command line."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from builders.plan_views import phase, plan
from builders.services import pod, service, task
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.owners.rollout import PhaseRollout, Rollout
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.change import (
    FieldChange,
    InstanceChange,
    PlanChange,
    PlanEffect,
    PodChange,
    PodEffect,
)
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import PhaseYaml, PlanYaml, ServiceSpec
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.owners import Rollback, UninstallRequest
from temporal_plans.messages.services import (
    ChangeView,
    Configurations,
    DeployResult,
    Pods,
    ServiceInput,
)
from unit.cli.kit import DONE, Run
from unit.cli.service_answers import SERVICE, answering, pod_view
from unit.fake_gateway import THEN, Call, FakeGateway

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
        Reason(field="pods.world", problem="has 0 tasks, expected >=9 tasks", fix="keep them"),
        Reason(field="user", problem="can't change"),
    )
)
REFUSED_TEXT = """\
Error: the configuration is refused:
- pods.world: has 0 tasks, expected >=9 tasks; keep them
- user: can't change
"""


def spec(count: int, cmd: str = "sleep 1") -> ServiceSpec:
    return service(pod("hello", count, task("server", cmd=cmd)), name="hello-world")


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


def deployed(**changes: object) -> DeployResult:
    result = DeployResult(
        config_id="ccc",
        plan="hello-world/deploy",
        outcome=Outcome(result=Result.DONE, message="plan hello-world/deploy is under way"),
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


def test_the_numbers_of_a_rollout_are_for_every_phase_or_for_one(
    run: Run, gateway: FakeGateway, svc: str
) -> None:
    answering(gateway, deploy=deployed(), rollback=deployed())
    given = ("--canary", "2", "--canary", "web=1", "--max-unavailable", "a=b=3")
    assert run("deploy", svc, "-e", "HELLO_COUNT=1", *given).code == 0
    phases = {"web": PhaseRollout(canary=1), "a=b": PhaseRollout(max_unavailable=3)}
    [call] = gateway.told
    assert isinstance(call.argument, ServiceInput)
    assert call.argument.rollout == Rollout(canary=2, phases=phases)


@pytest.mark.parametrize("number", ["0", "1001", "web=", "=1", "web=0", "-1", "1.5", "web=one"])
@pytest.mark.parametrize("option", ["--canary", "--max-unavailable"])
def test_what_is_no_number_of_pods_is_a_usage_error(
    run: Run, gateway: FakeGateway, svc: str, option: str, number: str
) -> None:
    ran = run("deploy", svc, "-e", "HELLO_COUNT=1", f"{option}={number}")
    assert ran.code == 2
    assert "must be a number of pods from 1 to 1000, or PHASE=NUMBER" in " ".join(ran.err.split())
    assert gateway.told == list[Call]()


def test_a_number_is_given_once(run: Run, svc: str) -> None:
    ran = run("rollback", "--canary", "web=1", "--canary", "web=2")
    assert ran.code == 2
    assert "phase web has a number already" in " ".join(ran.err.split())


def test_values_that_are_none_are_told_together(run: Run, gateway: FakeGateway, svc: str) -> None:
    wrong = ("FRAMEWORK_INITIAL_BACKOFF=soon", "MIN_REPLACE_DELAY_SECS=later")
    ran = run("deploy", svc, "-e", "HELLO_COUNT=1", "-e", wrong[0], "-e", wrong[1])
    assert ran.code == 1
    assert all(name.partition("=")[0] in ran.err for name in wrong)
    assert gateway.told == list[Call]()


def test_a_refused_change_tells_every_reason(run: Run, gateway: FakeGateway, svc: str) -> None:
    refused = deployed(outcome=Outcome(result=Result.REFUSED, message="no"), change=REFUSED)
    answering(gateway, deploy=refused)
    ran = run("deploy", svc, "-e", "HELLO_COUNT=2", "--wait")
    assert (ran.code, ran.out, ran.err) == (1, "", REFUSED_TEXT)


def test_a_deployment_that_changes_nothing_says_so(
    run: Run, gateway: FakeGateway, svc: str
) -> None:
    same = deployed(outcome=Outcome(result=Result.NOTHING, message="nothing changed"))
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
    assert body["outcome"]["result"] == "done"
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

PLANS_ONLY = ChangeView(
    plans=(
        PlanChange(
            plan="deploy",
            effect=PlanEffect.CHANGE,
            fields=(
                FieldChange(
                    path="phases.hello.strategy", before="serial", after="canary", restarts=False
                ),
            ),
        ),
        PlanChange(plan="backup", effect=PlanEffect.ADD),
    ),
    settings=(FieldChange(path="backoff.factor", before="1", after="2", restarts=False),),
)
PLANS_TEXT = """\
plan deploy changes
    phases.hello.strategy: serial -> canary
plan backup is added
settings:
    backoff.factor: 1 -> 2
"""
UNCHANGED = ChangeView(pods=(CHANGE.pods[2],))


@pytest.mark.parametrize(
    ("change", "options", "code", "out", "err"),
    [
        pytest.param(CHANGE, (), 0, CHANGE_TEXT, "", id="allowed"),
        pytest.param(CHANGE, ("--exit-code",), 1, CHANGE_TEXT, "", id="exit-code"),
        pytest.param(UNCHANGED, (), 0, "Nothing changes.\n", "", id="nothing"),
        pytest.param(UNCHANGED, ("--exit-code",), 0, "Nothing changes.\n", "", id="nothing-code"),
        pytest.param(PLANS_ONLY, (), 0, PLANS_TEXT, "", id="plans-only"),
        pytest.param(PLANS_ONLY, ("--exit-code",), 1, PLANS_TEXT, "", id="plans-only-code"),
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


def test_a_deployment_says_which_plans_change(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, deploy=deployed(change=PLANS_ONLY))
    assert run("deploy", svc, "-e", "HELLO_COUNT=2").out.startswith(PLANS_TEXT)


def test_a_command_of_several_lines_differs_by_line(
    run: Run, gateway: FakeGateway, svc: str
) -> None:
    field = FieldChange(
        path="tasks.server.cmd", before="a\nb", after="a\nc", lines=(" a", "-b", "+c")
    )
    answering(gateway, preview=ChangeView(pods=(PodChange(pod="hello", fields=(field,)),)))
    assert run("diff", svc, "-e", "HELLO_COUNT=2").out == (
        "hello: no pod is touched\n    tasks.server.cmd: (restarts)\n       a\n      -b\n      +c\n"
    )


def test_diff_as_json(run: Run, gateway: FakeGateway, svc: str) -> None:
    answering(gateway, preview=REFUSED)
    ran = run("diff", svc, "-e", "HELLO_COUNT=2", "--json")
    assert [problem["field"] for problem in json.loads(ran.out)["problems"]] == [
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


def test_config_diff_of_plans(run: Run, gateway: FakeGateway) -> None:
    phases = {"hello": PhaseYaml(pod="hello", strategy="canary")}
    other = spec(1).but(plans={"deploy": PlanYaml(phases=phases)}, web_url="http://a")
    kept = (
        Configuration(id="aaa", number=1, spec=spec(1)),
        Configuration(id="bbb", number=2, spec=other),
    )
    answering(gateway, configurations=Configurations(configurations=kept, target="bbb"))
    assert run("config", "diff", "1").out == (
        "Configuration 1 -> 2 (in force):\n"
        "plan deploy changes\n    phases.hello.strategy: serial -> canary\n"
        "settings:\n    web-url: (none) -> http://a\n"
    )
    body = json.loads(run("config", "diff", "1", "--json").out)
    assert [plan["plan"] for plan in body["plans"]] == ["deploy"]


def test_config_diff(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, configurations=CONFIGURATIONS)
    out = "Configuration 1 -> 2:\nhello:\n    count: 1 -> 2\n"
    assert run("config", "diff", "1", "2").out == out
    command = "    tasks.server.cmd: sleep 1 -> sleep 2 (restarts)\n"
    head = "Configuration 2 -> 3 (in force):\n"
    assert run("config", "diff", "2").out == f"{head}hello:\n{command}"
    itself = "Configuration 2 was compared with itself; name two: config diff A B.\n"
    assert run("config", "diff", "2", "2").out == f"{itself}They do not differ.\n"


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


def test_a_rollback_is_shown_beforehand(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, configurations=CONFIGURATIONS, preview_rollback=CHANGE)
    ran = run("rollback", "1", "--dry-run")
    assert (ran.code, ran.out) == (0, CHANGE_TEXT)
    answering(gateway, preview_rollback=REFUSED)
    ran = run("rollback", "1", "--dry-run", "--json")
    assert (ran.code, ran.err) == (1, REFUSED_TEXT)
    assert json.loads(ran.out)["problems"]
    assert gateway.told == list[Call]()
    assert run("rollback", "1", "--dry-run", "--wait").code == 2


def test_there_may_be_none_before(run: Run, gateway: FakeGateway) -> None:
    first = Configurations(configurations=CONFIGURATIONS.configurations[:1], target="aaa")
    answering(gateway, configurations=first)
    ran = run("rollback")
    assert ran.code == 1
    assert "no configuration before 1, which is in force" in ran.err
    assert gateway.told == list[Call]()


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    from io import StringIO

    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))


# --- uninstall ----------------------------------------------------------------------------------


def test_uninstall_needs_a_yes_where_nobody_can_be_asked(run: Run, gateway: FakeGateway) -> None:
    ran = run("uninstall", "-s", "hello-world")
    assert ran.code == 2
    assert "add --yes" in ran.err
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
