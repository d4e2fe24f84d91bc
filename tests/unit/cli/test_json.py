"""``--json`` of the commands that change something, and of ``validate``."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter

from builders.plan_views import plan
from builders.plans import phase_spec
from builders.pools import reservation
from builders.services import pod as service_pod
from builders.services import task as service_task
from temporal_plans.cli.terminal.output import written
from temporal_plans.client.reading.dialect import plan_body
from temporal_plans.client.reading.plan_run import PlanRun
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Outcome, Result
from temporal_plans.domain.plans.explain import Explanation
from temporal_plans.domain.plans.plan import StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.model import in_file_form
from temporal_plans.messages.pools import DeregisterResult
from temporal_plans.messages.services import Pods
from unit.cli.kit import DONE, Run
from unit.cli.service_answers import answering, pod_view
from unit.fake_gateway import THEN, FakeGateway, FakeWorkflow

OUTCOME: dict[str, Any] = {
    "result": "done",
    "message": "Received cmd",
    "waiting": [],
    "refusal": None,
}


@pytest.mark.parametrize(
    "command", ["start", "stop", "continue", "interrupt", "restart", "force-complete"]
)
def test_commands_to_plans(run: Run, command: str) -> None:
    ran = run(command, "deploy", "--json")
    assert (ran.code, json.loads(ran.out)) == (
        0,
        {"plan": "hello-world/deploy", "outcome": OUTCOME},
    )


def test_a_command_that_changes_nothing_has_its_outcome_too(run: Run, gateway: FakeGateway) -> None:
    already = Outcome(result=Result.ALREADY, message="it is")
    gateway.workflows["hello-world/deploy"].answers["interrupt"] = already
    ran = run("interrupt", "deploy", "--json")
    assert (ran.code, json.loads(ran.out)["outcome"]["result"]) == (1, "already")
    assert ran.err


def test_uninstall(run: Run, gateway: FakeGateway) -> None:
    answering(gateway, uninstall=DONE)
    ran = run("uninstall", "--yes", "--json")
    assert json.loads(ran.out) == {
        "service": "hello-world",
        "plan": "hello-world/deploy",
        "outcome": OUTCOME,
        "schedules": [],
    }


def test_remove_agent(run: Run, gateway: FakeGateway) -> None:
    removed = DeregisterResult(dropped=("a", "b"))
    gateway.workflows["pool/default"] = FakeWorkflow("Pool", {"deregister": removed})
    body = json.loads(run("remove-agent", "a1", "--force", "--json").out)
    assert body == {"agent": "a1", "pool": "default", "dropped": ["a", "b"], "alive": False}


def test_run(run: Run, gateway: FakeGateway, tmp_path: Path) -> None:
    path = tmp_path / "nap.yml"
    path.write_text("name: nap\nphases: {p: {steps: {s: {sleep: 1}}}}\n")
    assert json.loads(run("run", str(path), "--json").out) == {"plan": "nap"}


SERVICE = """
name: svc
pods: {web: {count: 1, tasks: {server: {goal: RUNNING, cmd: a, cpus: 0.1, memory: 32}}}}
"""
PLAN = "name: nap\nparameters: {A: a}\nphases: {p: {steps: {s: {sleep: 1}}}}\n"


def validated(run: Run, tmp_path: Path, text: str, code: int) -> dict[str, Any]:
    path = tmp_path / "file.yml"
    path.write_text(text)
    ran = run("validate", str(path), "--json")
    assert ran.code == code
    body: dict[str, Any] = json.loads(ran.out)
    return body


def test_validate_a_service(run: Run, tmp_path: Path) -> None:
    body = validated(run, tmp_path, SERVICE, 0)
    assert (body["kind"], body["name"], body["problems"]) == ("service", "svc", [])
    (plan,) = body["plans"]
    assert plan["phases"][0]["steps"][0]["name"] == "web-0:[server]"


def test_validate_a_plan(run: Run, tmp_path: Path) -> None:
    body = validated(run, tmp_path, PLAN, 0)
    assert (body["kind"], body["name"]) == ("plan", "nap")
    assert body["parameters"][0]["default"] == "a"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        (SERVICE.replace("cpus: 0.1", "cpus: much"), "pods.web.tasks.server.cpus"),
        ("a: b\n", ""),
    ],
    ids=["value", "kind"],
)
def test_validate_what_is_wrong(run: Run, tmp_path: Path, text: str, field: str) -> None:
    body = validated(run, tmp_path, text, 1)
    assert field in [problem["field"] for problem in body["problems"]]


# --- one spelling ---------------------------------------------------------------------------------


def test_queries_and_commands_write_the_same_keys() -> None:
    """A query is written by the converter of payloads, which leaves defaults out; a command writes
    all fields. Both name them as Python does."""
    explanation = Explanation(
        status=Status.PENDING, cause=Cause.OFFER, text="t", waits_for=("a",), until=THEN
    )
    (payload,) = pydantic_data_converter.payload_converter.to_payloads([explanation])
    queried = json.loads(payload.data)
    printed = written(explanation)
    assert queried["waits_for"] == printed["waits_for"] == ["a"]
    assert queried["until"] == printed["until"] == plan_body(run_since(THEN))["started"]
    assert queried.items() <= printed.items()


def run_since(started: datetime) -> PlanRun:
    return PlanRun(plan(Status.IN_PROGRESS).but(started=started))


@pytest.mark.parametrize("name", ["depends-on", "depends_on"])
def test_both_spellings_are_read(name: str) -> None:
    step = {"name": "a", "work": {"kind": "sleep", "duration": 1}, name: ["b"]}
    assert StepSpec.model_validate_json(json.dumps(step)).depends_on == ("b",)


def test_files_keep_their_own_keys() -> None:
    step = StepSpec(name="a", work=SleepWork(duration=timedelta(1)), depends_on=("b",))
    assert in_file_form(phase_spec("p", step))["steps"][0]["depends-on"] == ["b"]
    task = service_task(env={"A_B": "1"})
    (written_task,) = in_file_form(service_pod("web", 1, task))["tasks"]
    assert (written_task["env"], "resource-set" in written_task) == ({"A_B": "1"}, True)


def test_ports_and_megabytes_are_whole_numbers(run: Run, gateway: FakeGateway) -> None:
    resources = [
        ReservedResource(id="1", set="s", kind="port", value=9000),
        ReservedResource(id="2", set="s", kind="memory", value=32),
        ReservedResource(id="3", set="s", kind="cpus", value=1),
    ]
    held = reservation("hello", 0, owner="service/hello-world", resources=tuple(resources))
    answering(gateway, pods=Pods(pods=(pod_view(reservation=held),)))
    shown = run("pods", "--json").out
    assert [text.split()[-1].rstrip(",") for text in shown.splitlines() if '"value"' in text] == [
        "9000", "32", "1.0",
    ]  # fmt: skip
