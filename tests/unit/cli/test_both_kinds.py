"""Commands that take a service, over a package: each works, or says what to use instead."""

import json
from datetime import UTC, datetime

import pytest
from pydantic import BaseModel

from builders.packages import OPERATOR, PARAMETERS, package_files
from builders.plan_views import reference_plan
from temporal_plans.client.errors import Refused
from temporal_plans.domain.owners.runs import RunHistory, RunRecord
from temporal_plans.domain.packages.configuration import PackageConfiguration
from temporal_plans.domain.packages.installation import Installation, definition_of
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.explain import Explanations
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.refusal import Code
from temporal_plans.loading.packages.reader import read_files
from temporal_plans.messages.owners import PlanRecord
from temporal_plans.messages.packages import (
    InstanceStatus,
    ObjectsReport,
    PackageConfigurations,
    PackageDeployResult,
)
from temporal_plans.messages.plans import CommandLog
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
        "configurations": PackageConfigurations(configurations=(kept,), target="c1"),
        "runs": RunHistory(runs=(run,)),
        "log": CommandLog(),
        "look": ObjectsReport(),
        "start_plan": DONE,
        "uninstall": DONE,
        "rollback": deployed,
        "deploy": deployed,
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
    of_service = () if command.startswith("schedule") else ("-s", "store")
    ran = run(*command.split(), *of_service)
    assert ran.code == 0, ran


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
