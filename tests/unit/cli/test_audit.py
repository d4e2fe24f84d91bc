"""The comparison of agents with services, on the command line."""

import json

import pytest

from builders.pools import agent_view
from builders.services import service_status
from builders.tasks import record
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import Tasks
from temporal_plans.messages.tasks import ListedTask, ListedTasks, TaskStatuses
from unit.cli.kit import Run
from unit.fake_gateway import THEN, FakeGateway, FakeWorkflow

WEB = record("web", 0, "server", TaskState.RUNNING, task_id="shop__web-0-server__1").but(agent="a1")
QUEUE = agent_view("a1").info.queue


@pytest.fixture(autouse=True)
def a_service_and_an_agent(gateway: FakeGateway) -> None:
    gateway.workflows.clear()
    shop = {"status": service_status("shop", "deploy"), "tasks": Tasks(tasks=(WEB,))}
    gateway.workflows["service/shop"] = FakeWorkflow("Service", dict(shop))
    status = PoolStatus(name="default", agents=(agent_view("a1"),))
    gateway.workflows["pool/default"] = FakeWorkflow("Pool", {"status": status})


def runs(gateway: FakeGateway, *uniques: str) -> None:
    tasks = tuple(
        ListedTask(
            task_id=f"shop__web-0-server__{unique}", name="web-0-server", report_to="service/shop"
        )
        for unique in uniques
    )
    gateway.queues[QUEUE] = [ListedTasks(tasks=tasks, number=len(tasks))]


def test_nothing_differs(run: Run, gateway: FakeGateway) -> None:
    runs(gateway, "1")
    ran = run("audit")
    assert ran.err == ""
    assert ran.out == "Agents and services agree; 1 tasks run.\n"


def test_each_difference_has_its_commands(run: Run, gateway: FakeGateway) -> None:
    runs(gateway, "2")
    assert run("audit").out.splitlines() == [
        "- shop__web-0-server__2: runs on agent a1, and service shop has no memory of launching it",
        "    to see its output: temporal plan logs shop__web-0-server__2 --agent a1",
        "    to end it: temporal plan audit --end shop__web-0-server__2",
        "- shop__web-0-server__1: is RUNNING for service shop, and agent a1 does not run it",
        "    to launch it: temporal plan pod restart web-0 -s shop",
        "    if the agent has released its resources: temporal plan pod replace web-0 -s shop",
    ]
    runs(gateway, "2")
    found = json.loads(run("audit", "--json").out)
    assert [one["task_id"][-1] for one in found["differences"]] == ["2", "1"]


def test_an_agent_that_gives_no_answer_is_named(run: Run) -> None:
    assert run("audit").out.startswith("agent a1 was left out: ")


def test_a_task_is_ended(run: Run, gateway: FakeGateway) -> None:
    runs(gateway, "2")
    status = TaskStatus(
        task_id="shop__web-0-server__2",
        name="web-0-server",
        state=TaskState.KILLED,
        sequence=9,
        at=THEN,
    )
    gateway.queues[QUEUE].append(TaskStatuses(statuses=(status,)))
    assert run("audit", "--end", status.task_id).out == f"{status.task_id} is KILLED.\n"
    runs(gateway, "1")
    ran = run("audit", "--end", WEB.task_id)
    assert (ran.code, "pod restart web-0 -s shop" in ran.err) == (1, True)
