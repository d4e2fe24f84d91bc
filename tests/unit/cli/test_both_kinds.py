"""Commands that take a service, over a package: each works, or says what to use instead."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import BaseModel

from builders.packages import OPERATOR, PARAMETERS, package_files, write_package
from builders.plan_views import plan, reference_plan
from temporal_plans.cli.actions import showing
from temporal_plans.client.errors import Refused
from temporal_plans.client.temporal.executions import Ended
from temporal_plans.domain.owners.runs import RunHistory, RunRecord
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.installation import Installation, definition_of
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.explain import Explanation, Explanations, PendingWork
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.messages.owners import OwnerResult, PlanRecord, StartPlan
from temporal_plans.messages.packages import (
    InstanceInput,
    InstanceStatus,
    ObjectsReport,
    PackageConfigurations,
    PackageDeployResult,
    PackagePreview,
    installed_package,
)
from temporal_plans.messages.plans import CommandLog, LogEntry
from unit.cli.kit import DONE, Run
from unit.fake_gateway import FakeGateway, FakeWorkflow

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RECORD = PlanRecord(
    name="deploy",
    workflow_id="store/deploy",
    priority=0,
    status=Status.COMPLETE,
    run=1,
    changed=NOW,
)
NO_PODS = Refused.of(
    Code.NOT_APPLICABLE,
    "service store is a package: it has no pods",
    fix="see its objects with `temporal plan objects -s store`",
)
DEFINITION = definition_of(read_files(package_files(OPERATOR, PARAMETERS), "web").package, "a" * 64)


@pytest.fixture
def gateway(gateway: FakeGateway) -> FakeGateway:
    """The service hello-world of pods, and the package store."""
    installation = Installation(
        package=DEFINITION, instance="store", cluster="main", namespace="data", given={"SIZE": "5"}
    )
    kept = PackageConfiguration(id="c1", number=1, at=NOW, installation=installation)
    former = kept.but(id="c0", number=0, installation=installation.but(given={"SIZE": "4"}))
    status = InstanceStatus(
        name="store",
        content="package",
        config_id="c1",
        configs=("c1",),
        plans=(RECORD,),
        package="web",
        version="1.0.0",
        instance="store",
        cluster="main",
        namespace="data",
        startable=("deploy",),
        uids={"deploy": "uid-1"},
    )
    run = RunRecord(plan="deploy", run=1, started=NOW, ended=NOW, status=Status.COMPLETE)
    done = Outcome(result=Result.DONE, message="done")
    deployed = PackageDeployResult(config_id="c1", plan="store/deploy", outcome=done, number=1)
    answers: dict[str, BaseModel | Exception] = {
        "status": status,
        "configurations": PackageConfigurations(configurations=(former, kept), target="c1"),
        "runs": RunHistory(runs=(run,)),
        "log": CommandLog(),
        "look": ObjectsReport(),
        "start_plan": DONE,
        "uninstall": DONE,
        "rollback": deployed,
        "deploy": deployed,
        "preview": PackagePreview(before=installed_package("store", installation)),
        **dict.fromkeys(("pods", "tasks", "config"), NO_PODS),
    }
    verbs = ("start", "stop", "continue", "interrupt", "restart", "force_complete")
    plan: dict[str, BaseModel | Exception] = dict.fromkeys(verbs, DONE)
    plan["status"] = reference_plan()
    plan["log"] = CommandLog()
    plan["explain"] = Explanations(status=Status.COMPLETE)
    gateway.workflows["service/store"] = FakeWorkflow("Instance", answers)
    gateway.workflows["store/deploy"] = FakeWorkflow("Plan", plan)
    return gateway


@pytest.mark.parametrize(
    "command",
    [
        "list",
        "list --json",
        "show",
        "show deploy",
        "show --json",
        "history",
        "log",
        "log deploy",
        "configs",
        "objects",
        "config show",
        "config diff 0 1",
        "diff -p SIZE=5",
        "force-complete deploy",
        "schedule create deploy --every 1h",
        "rollback 1",
        "deploy -p SIZE=6",
        "start deploy",
        "explain",
        "explain deploy",
        "uninstall --yes",
        "stop deploy",
        "interrupt deploy",
        "continue deploy",
        "restart deploy",
        "schedule list",
    ],
)
def test_works_for_a_package(run: Run, command: str) -> None:
    of_service = () if command == "schedule list" else ("-s", "store")
    ran = run(*command.split(), *of_service)
    assert ran.code == 0, ran


def test_configurations_of_a_package_are_compared(run: Run) -> None:
    out = run("config", "diff", "0", "1", "-s", "store").out
    assert "4" in out
    assert "5" in out


def test_a_schedule_of_a_package_is_paused_and_resumed(run: Run, gateway: FakeGateway) -> None:
    assert run("schedule", "create", "deploy", "-s", "store", "--every", "1h").code == 0
    for verb in ("pause", "unpause", "delete"):
        assert run("schedule", verb, "store/deploy").code == 0, verb
    assert [one[:2] for one in gateway.schedules.told] == [
        (verb, "store/deploy") for verb in ("pause", "unpause", "delete")
    ]


def test_a_start_of_a_package_s_plan_goes_to_its_service(run: Run, gateway: FakeGateway) -> None:
    """So that it is a run of its own, also while one is open."""
    assert run("start", "deploy", "-s", "store", "--force", "-p", "SIZE=7").code == 0
    (told,) = gateway.told
    assert (told.to, told.name) == ("service/store", "start_plan")
    assert isinstance(told.argument, StartPlan)
    assert (told.argument.plan, told.argument.force) == ("deploy", True)
    assert told.argument.parameters == {"SIZE": "7"}
    run("start", "deploy", "-s", "hello-world")
    assert (gateway.told[-1].to, gateway.told[-1].name) == ("hello-world/deploy", "start")


# --- one name, for the one kind after the other ---------------------------------------------------

OF_WHAT_IS_GONE = "service 'store' not found"
NO_PLANS = "service 'store' has no plan 'deploy'"


@pytest.fixture(params=["package", "service"])
def former(gateway: FakeGateway, request: pytest.FixtureRequest) -> FakeGateway:
    """The same name after an uninstall of what had it last: a package, or a service of pods."""
    result = OwnerResult(
        name="store",
        content=request.param,
        runs=RunHistory(
            runs=(RunRecord(plan="cleanup", run=1, started=NOW, ended=NOW, status=Status.COMPLETE),)
        ),
        log=CommandLog(
            entries=(LogEntry(at=NOW, verb="uninstall", by="ann", via="update", outcome=DONE),)
        ),
    )
    kind = {"package": "Instance", "service": "Service"}[request.param]
    gateway.workflows["service/store"] = FakeWorkflow(kind, ended=Ended.COMPLETED, result=result)
    gateway.workflows["store/deploy"].ended = Ended.COMPLETED
    return gateway


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("explain", OF_WHAT_IS_GONE),
        ("configs", OF_WHAT_IS_GONE),
        ("config show", OF_WHAT_IS_GONE),
        ("config diff 0 1", OF_WHAT_IS_GONE),
        ("diff -p SIZE=6", OF_WHAT_IS_GONE),
        ("objects", OF_WHAT_IS_GONE),
        ("pods", OF_WHAT_IS_GONE),
        ("tasks", OF_WHAT_IS_GONE),
        ("pod restart store-0", OF_WHAT_IS_GONE),
        ("rollback 1", OF_WHAT_IS_GONE),
        ("deploy -p SIZE=6", OF_WHAT_IS_GONE),
        ("uninstall --yes", OF_WHAT_IS_GONE),
        ("schedule create deploy --every 1h", OF_WHAT_IS_GONE),
        ("start deploy", NO_PLANS),
        ("stop deploy", NO_PLANS),
        ("interrupt deploy", NO_PLANS),
        ("continue deploy", NO_PLANS),
        ("restart deploy", NO_PLANS),
        ("force-complete deploy", NO_PLANS),
        ("explain deploy", NO_PLANS),
    ],
)
def test_after_an_uninstall_of_either_kind(
    run: Run, former: FakeGateway, command: str, text: str
) -> None:
    ran = run(*command.split(), "-s", "store")
    assert (ran.code, ran.out) == (1, ""), ran
    assert text in ran.err
    assert "Traceback" not in ran.err
    assert former.told == []


def test_what_is_left_of_either_kind(run: Run, former: FakeGateway) -> None:
    assert "cleanup" in run("history", "-s", "store").out
    assert "uninstall" in run("log", "-s", "store").out
    assert "store" not in run("list").out
    assert run("show", "-s", "store").code == 0


def test_a_package_that_was_terminated_is_listed_as_one(run: Run, gateway: FakeGateway) -> None:
    gateway.workflows["service/store"].ended = Ended.TERMINATED
    (listed,) = json.loads(run("list", "-s", "store", "--json").out)
    assert (listed["id"], listed["kind"]) == ("store/deploy", "package")


def test_a_package_takes_the_name_of_what_is_gone(
    run: Run, former: FakeGateway, tmp_path: Path
) -> None:
    done = Outcome(result=Result.DONE, message="done")
    del former.workflows["service/store"]
    former.begins["deploy"] = PackageDeployResult(
        config_id="c1", plan="store/deploy", outcome=done, number=1
    )
    folder = str(write_package(tmp_path / "web"))
    assert run("deploy", folder, "-s", "store").code == 0
    assert former.workflows["service/store"].type == "Instance"


@pytest.mark.parametrize("command", ["deploy -p SIZE=6", "diff -p SIZE=6"])
def test_a_package_does_not_change_a_service_of_pods(run: Run, command: str) -> None:
    ran = run(*command.split(), "-s", "hello-world")
    assert ran.code == 1
    assert "has pods, so no package can have this name" in ran.err
    assert "temporal plan uninstall -s hello-world" in ran.err


def test_a_change_of_what_is_not_installed_is_refused(run: Run) -> None:
    ran = run("deploy", "-p", "SIZE=6", "-s", "stor")
    assert (ran.code, "service 'stor' not found" in ran.err) == (1, True)
    assert "store" in ran.err, "what resembles it"


@pytest.mark.parametrize("command", ["show", "show deploy", "objects", "history", "log"])
def test_what_is_not_installed_is_refused_by_name(run: Run, command: str) -> None:
    ran = run(*command.split(), "-s", "stor")
    assert (ran.code, "stor" in ran.err) == (1, True), ran


def test_an_uninstall_says_what_its_plan_waits_for(
    run: Run, gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins when no plan of a terminated service is open any more."""
    store = gateway.workflows["service/store"]
    status = store.answers["status"]
    assert isinstance(status, InstanceStatus)
    store.answers["status"] = status.but(plans=(RECORD.but(open=True),))
    waits = "run 1 of plan store/deploy waits for the end of store/backup"
    work = [
        (),
        (PendingWork(type="look_at_objects", last_failure="another matter"),),
        (PendingWork(type="start_plan", attempt=2, last_failure=waits),),
    ]

    async def pending_work(ids: Sequence[str]) -> Mapping[str, Sequence[PendingWork]]:
        assert ids == ["service/store"]
        if len(work) > 1:
            return {"service/store": work.pop(0)}
        cleanup = RECORD.but(name="cleanup", workflow_id="store/cleanup")
        store.answers["status"] = status.but(plans=(RECORD, cleanup))
        done: dict[str, BaseModel | Exception] = {"status": plan(Status.COMPLETE, name="cleanup")}
        gateway.workflows["store/cleanup"] = FakeWorkflow("Plan", done)
        store.ended = Ended.COMPLETED
        return {"service/store": work[0]}

    monkeypatch.setattr(gateway, "pending_work", pending_work)
    monkeypatch.setattr(showing, "_BEGIN_INTERVAL", 0.01)
    store.result = OwnerResult(
        name="store",
        content="package",
        runs=RunHistory(
            runs=(RunRecord(plan="cleanup", run=1, started=NOW, status=Status.COMPLETE),)
        ),
    )

    ran = run("uninstall", "-s", "store", "--yes", "--wait")

    assert ran.code == 0, ran.err
    has_not_begun = "Plan store/cleanup has not begun: "
    said = [line for line in ran.out.splitlines() if line.startswith(has_not_begun)]
    assert said == [
        f"{has_not_begun}plan store/cleanup waits for the end of store/deploy",
        f"{has_not_begun}{waits}",
    ]


def in_trouble(gateway: FakeGateway) -> None:
    store = gateway.workflows["service/store"]
    status = store.answers["status"]
    assert isinstance(status, InstanceStatus)
    store.answers["status"] = status.but(trouble="not ready: StatefulSet db: 0 of 1 replicas")


def test_trouble_of_objects_is_listed_and_shown(run: Run, gateway: FakeGateway) -> None:
    assert "not ready" not in run("list").out + run("show", "-s", "store").out
    in_trouble(gateway)
    (line,) = [one for one in run("list").out.splitlines() if "not ready" in one]
    assert line.split()[:3] == ["store", "package", "-"]
    assert line.endswith("not ready: StatefulSet db: 0 of 1 replicas")
    shown = run("show", "-s", "store").out
    assert "- not ready: StatefulSet db: 0 of 1 replicas" in shown
    assert "temporal plan explain -s store" in shown
    (listed,) = [one for one in json.loads(run("list", "--json").out) if not one["name"]]
    assert (listed["id"], listed["kind"]) == ("service/store", "package")


@pytest.mark.parametrize("cause", ["error", "backoff", "readiness"])
def test_explain_says_what_helps_a_step_of_a_package(
    run: Run, gateway: FakeGateway, cause: str
) -> None:
    one = Explanation(
        phase="main",
        step="app",
        status=Status.DELAYED,
        cause=Cause(cause),
        text="step app: Secret it: forbidden: exceeded quota: full (403)",
    )
    explained = Explanations(status=Status.DELAYED, explanations=(one,))
    for name in ("store/deploy", "hello-world/deploy"):
        gateway.workflows[name].answers["explain"] = explained
    assert "raise the quota" in run("explain", "deploy", "-s", "store").out
    assert "raise the quota" not in run("explain", "deploy", "-s", "hello-world").out


def test_settings_of_a_package(run: Run, gateway: FakeGateway) -> None:
    settings = ("--setting", "look-interval=30s", "--setting", "failed-cleanup=end")
    ran = run("deploy", "-s", "store", *settings)
    assert ran.code == 0, ran
    sent = gateway.told[-1].argument
    assert isinstance(sent, InstanceInput)
    switches = sent.change.switches
    assert switches is not None
    assert switches.look_interval == timedelta(seconds=30)
    assert (switches.failed_cleanup, switches.unknown_parameters) == ("end", "refuse")


@pytest.mark.parametrize("text", ["look-interval=0s", "look-interval=x", "colour=red"])
def test_a_wrong_setting_is_refused(run: Run, text: str) -> None:
    ran = run("deploy", "-s", "store", "--setting", text)
    assert ran.code == 1, ran
    assert text.partition("=")[0] in ran.err


def test_an_audit_leaves_packages_out(run: Run) -> None:
    assert "store" not in run("audit", "--json").out


@pytest.mark.parametrize(
    "command",
    [
        "pods",
        "tasks",
        "pod restart store-0",
        "pod replace store-0",
        "pod pause store-0",
        "pod resume store-0",
        "logs store-0",
    ],
)
def test_a_package_has_no_pods(run: Run, command: str) -> None:
    ran = run(*command.split(), "-s", "store")
    assert ran.code == 1, ran
    assert "has no pods" in ran.err
    assert "temporal plan objects -s store" in ran.err


def test_the_status_document_of_a_package(run: Run) -> None:
    body = json.loads(run("show", "-s", "store", "--dialect", "operator", "--json").out)
    assert body["kind"] == "Instance"
    assert body["metadata"] == {
        "name": "store",
        "namespace": "data",
        "labels": {"kudo.dev/operator": "web"},
    }
    assert body["spec"]["parameters"] == {"SIZE": "5"}
    plan = body["status"]["planStatus"][reference_plan().name]
    assert plan["phases"]


def test_a_run_before_the_import_has_no_tree(run: Run, gateway: FakeGateway) -> None:
    del gateway.workflows["store/deploy"]
    body = json.loads(run("show", "-s", "store", "--dialect", "operator", "--json").out)
    plan = body["status"]["planStatus"]["deploy"]
    assert (plan["status"], plan["uid"], plan["phases"]) == ("COMPLETE", "uid-1", [])


def test_a_service_of_pods_has_no_such_document(run: Run) -> None:
    ran = run("show", "-s", "hello-world", "--dialect", "operator", "--json")
    assert ran.code == 1
    assert "only a package has this status document" in ran.err


@pytest.mark.parametrize("more", [[], ["deploy", "--json"]])
def test_the_dialect_is_json_of_a_whole_package(run: Run, more: list[str]) -> None:
    ran = run("show", *more, "-s", "store", "--dialect", "operator")
    assert ran.code == 2
    assert "--dialect needs --json" in ran.err


NOTHING = PackageDeployResult(
    config_id="c1",
    plan="",
    outcome=Outcome(result=Result.NOTHING, message="nothing changed"),
    number=1,
)


def test_a_deployment_that_changes_nothing_names_a_plan_in_error(
    run: Run, gateway: FakeGateway
) -> None:
    """It is not repeated, so that there is nothing to wait for, and no success."""
    workflow = gateway.workflows["service/store"]
    status = workflow.answers["status"]
    assert isinstance(status, InstanceStatus)
    workflow.answers["deploy"] = NOTHING
    command = ("deploy", "-s", "store", "-p", "SIZE=5", "--wait")
    ran = run(*command)
    assert (ran.code, ran.err) == (0, "")
    failed = RECORD.but(status=Status.ERROR)
    workflow.answers["status"] = status.but(plans=(failed,))
    ran = run(*command)
    assert (ran.code, ran.out) == (1, 'Service "store": nothing changed.\n')
    assert "plan store/deploy is in ERROR" in ran.err
    assert "`temporal plan explain deploy -s store`" in ran.err
