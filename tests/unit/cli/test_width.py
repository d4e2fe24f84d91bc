"""Output of the width of the terminal, its times, and the order of tasks."""

import json
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from rich.text import Text

from builders.pools import agent_view
from builders.tasks import record
from temporal_plans.cli.terminal.columns import columns
from temporal_plans.cli.terminal.listing import moment
from temporal_plans.cli.terminal.width import wrapped
from temporal_plans.domain.cluster.agents import AgentResources
from temporal_plans.domain.owners.runs import RunHistory, RunRecord
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.services.change import (
    FieldChange,
    InstanceChange,
    PlanChange,
    PlanEffect,
    PodChange,
    PodEffect,
)
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import ChangeView, Tasks
from unit.cli.kit import Run
from unit.cli.service_answers import answering
from unit.fake_gateway import THEN, FakeGateway, FakeWorkflow

LONG = "a reason of many words " * 8
PATH = "tasks.server.configs.an-important-file.template"


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch, run: Run) -> Run:
    monkeypatch.setenv("COLUMNS", "80")
    return run


def history(gateway: FakeGateway) -> tuple[str, ...]:
    run = RunRecord(
        plan="deploy", run=1, started=THEN, status=Status.IN_PROGRESS, superseded=True,
        config=3, by="an-operator@a-machine", reason=LONG, what=LONG, run_id="r",
    )  # fmt: skip
    answering(gateway, runs=RunHistory(runs=(run,)))
    return ("history",)


def tasks(gateway: FakeGateway) -> tuple[str, ...]:
    long_id = "hello-0-server__0123456789-0123456789-0123456789"
    answering(gateway, tasks=Tasks(tasks=(record("hello", 0, "server", task_id=long_id),)))
    return ("tasks",)


def agents(gateway: FakeGateway) -> tuple[str, ...]:
    resources = AgentResources(cpus=0.667, memory=1000, disk=5000, gpus=2)
    view = agent_view("an-agent-of-a-rack", resources=resources, attributes={"rack": LONG})
    status = PoolStatus(name="default", agents=(view,))
    gateway.workflows["pool/default"] = FakeWorkflow("Pool", {"status": status})
    return ("agents",)


def diff(gateway: FakeGateway) -> tuple[str, ...]:
    lines = (f"-{'x' * 90}", f"+{'y ' * 50}")
    fields = (
        FieldChange(path=PATH, before=LONG[:120], after=None),
        FieldChange(path="tasks.server.cmd", before="", after="", lines=lines),
    )
    instances = tuple(
        InstanceChange(name=f"a-pod-with-a-name-{i}", effect=PodEffect.RESTART) for i in range(6)
    )
    change = ChangeView(
        pods=(PodChange(pod="hello", fields=fields, instances=instances),),
        plans=(PlanChange(plan="deploy", effect=PlanEffect.CHANGE, fields=fields),),
    )
    answering(gateway, preview=change)
    return ("diff",)


@pytest.mark.parametrize("asked", [history, tasks, agents, diff], ids=lambda asked: asked.__name__)
def test_it_fits_the_terminal(
    narrow: Run,
    gateway: FakeGateway,
    tmp_path_factory: pytest.TempPathFactory,
    asked: Callable[[FakeGateway], tuple[str, ...]],
) -> None:
    command = asked(gateway)
    if command == ("diff",):
        file = tmp_path_factory.mktemp("svc") / "svc.yml"
        file.write_text(
            "name: hello-world\npods: {hello: {count: 1, tasks: {server: {goal: RUNNING,"
            " cmd: sleep 1, cpus: 0.1, memory: 32}}}}\n"
        )
        command = ("diff", str(file))
    ran = narrow(*command)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80


def test_what_has_no_column_is_named_below_its_row(narrow: Run, gateway: FakeGateway) -> None:
    history(gateway)
    head, row, *details = narrow("history").out.splitlines()
    assert head.split() == ["PLAN", "RUN", "CONFIG", "STARTED", "RESULT"]
    assert row.split()[:3] == ["deploy", "1", "3"]
    assert "    by: an-operator@a-machine" in details
    text = " ".join(" ".join(details).split())
    assert f"what: {LONG}reason: {LONG}".strip() in text


def test_a_pipe_has_no_width(run: Run, gateway: FakeGateway) -> None:
    history(gateway)
    assert len(run("history").out.splitlines()) == 2


def test_the_first_column_stays_however_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "3")
    lines = columns(("NAME", "REASON"), [("n" * 30, Text("because", style="red"))])
    assert [line.plain for line in lines] == ["NAME", "n" * 30, "    reason: because"]


def test_a_line_is_wrapped_between_words_and_keeps_its_colours() -> None:
    line = Text("one two ").append("three four", style="red")
    lines = wrapped(line, indent=2, width=10)
    assert [one.plain for one in lines] == ["one two", "  three", "  four"]
    assert all(one.spans for one in lines[1:])


def test_agents_say_what_is_free(run: Run, gateway: FakeGateway) -> None:
    assert "1 free of 0.667  1 free of 1000 MB" in run(*agents(gateway)).out


def test_times_have_their_zone() -> None:
    shown = moment(datetime(2026, 11, 22, 13, 5, 1, 999, tzinfo=UTC))
    assert datetime.fromisoformat(shown) == datetime(2026, 11, 22, 13, 5, 1, tzinfo=UTC)


def test_tasks_are_sorted_by_pod_and_number(run: Run, gateway: FakeGateway) -> None:
    records = [record(*one, "server") for one in [("b", 0), ("a", 10), ("a", 9)]]
    answering(gateway, tasks=Tasks(tasks=tuple(records)))
    names = ["a-9-server", "a-10-server", "b-0-server"]
    assert [line.split()[0] for line in run("tasks").out.splitlines()[1:]] == names
    assert [one["name"] for one in json.loads(run("tasks", "--json").out)["tasks"]] == names
