"""The comparison of agents with services."""

import pytest

from builders.pools import agent_view
from builders.services import service_status
from builders.tasks import record
from temporal_plans.client.errors import Refused, TaskNotFound
from temporal_plans.client.plans_client import PlansClient
from temporal_plans.client.reading.audit import differences
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.messages.pools import PoolStatus
from temporal_plans.messages.services import Tasks
from temporal_plans.messages.tasks import KillInput, ListedTask, ListedTasks, TaskStatuses
from unit.fake_gateway import THEN, FakeGateway, FakeWorkflow

WEB = record("web", 0, "server", TaskState.RUNNING, task_id="shop__web-0-server__1").but(agent="a1")


def listed(unique: str, service: str = "shop") -> ListedTask:
    task = f"{service}__web-0-server__{unique}"
    return ListedTask(task_id=task, name="web-0-server", report_to=f"service/{service}")


def texts(
    *running: ListedTask,
    before: TaskRecord = WEB,
    after: TaskRecord = WEB,
    unanswered: tuple[str, ...] = (),
) -> list[str]:
    found = differences({"a1": running}, {"shop": (before,)}, {"shop": (after,)}, unanswered)
    return [f"{one.task_id} {one.text}" for one in found]


def test_agents_and_services_agree() -> None:
    assert texts(listed("1")) == []


def test_a_task_that_no_service_launched() -> None:
    assert texts(listed("1"), listed("2"), listed("3", "fresh")) == [
        "shop__web-0-server__2 runs on agent a1, and service shop has no memory of launching it",
        "fresh__web-0-server__3 runs on agent a1, and service fresh does not exist",
    ]


def test_a_task_that_its_service_takes_for_running() -> None:
    assert texts() == [
        "shop__web-0-server__1 is RUNNING for service shop, and agent a1 does not run it"
    ]
    [found] = differences({"a1": ()}, {"shop": (WEB,)}, {"shop": (WEB,)}, ())
    assert [hint.command for hint in found.hints] == [
        "temporal plan pod restart web-0 -s shop",
        "temporal plan pod replace web-0 -s shop",
    ]


def test_what_changes_while_it_is_compared_is_no_difference() -> None:
    newer = WEB.but(task_id="shop__web-0-server__2").after(WEB)
    assert texts(listed("1"), before=WEB, after=newer) == []
    assert texts(listed("2"), before=WEB, after=newer) == []
    ended = WEB.but(status=WEB.status and WEB.status.but(state=TaskState.FAILED))
    assert texts(before=WEB, after=ended) == []


def test_nothing_is_said_of_what_gives_no_answer() -> None:
    assert texts(listed("1"), listed("4", "mute"), unanswered=("mute",)) == []
    assert differences({}, {"shop": (WEB,)}, {"shop": (WEB,)}, ()) == ()


def test_commands_of_plans_are_left_out() -> None:
    command = ListedTask(task_id="plan__command__1", name="command")
    assert texts(listed("1"), command) == []


@pytest.fixture
def gateway() -> FakeGateway:
    agents = (agent_view("a1"), agent_view("a2").but(state=AgentState.LOST))
    pool = PoolStatus(name="default", agents=agents)
    status = service_status("shop", "deploy")
    return FakeGateway(
        workflows={
            "pool/default": FakeWorkflow("Pool", {"status": pool}),
            "service/shop": FakeWorkflow(
                "Service", {"status": status, "tasks": Tasks(tasks=(WEB,))}
            ),
        },
    )


def running(gateway: FakeGateway, *tasks: ListedTask, more: tuple[TaskStatuses, ...] = ()) -> None:
    queue = agent_view("a1").info.queue
    gateway.queues[queue] = [ListedTasks(tasks=tasks, number=len(tasks)), *more]


async def test_every_agent_is_asked_and_those_left_out_are_named(gateway: FakeGateway) -> None:
    running(gateway, listed("1"), listed("2"))
    audit = await PlansClient(gateway=gateway).audit()
    assert [one.task_id for one in audit.differences] == ["shop__web-0-server__2"]
    assert (audit.tasks, audit.silent) == (2, {"agent a2": "it is LOST"})
    running(gateway)
    gateway.queues.clear()
    assert set((await PlansClient(gateway=gateway).audit()).silent) == {"agent a1", "agent a2"}


async def test_a_task_that_no_service_knows_is_ended(gateway: FakeGateway) -> None:
    status = TaskStatus(
        task_id="shop__web-0-server__2",
        name="web-0-server",
        state=TaskState.KILLED,
        sequence=9,
        at=THEN,
    )
    running(gateway, listed("1"), listed("2"), more=(TaskStatuses(statuses=(status,)),))
    assert await PlansClient(gateway=gateway).end_task(status.task_id, reason="old") == status
    killed = KillInput(task_ids=(status.task_id,), reason="old")
    assert gateway.told[-1].argument == killed


async def test_a_task_that_its_service_knows_is_not(gateway: FakeGateway) -> None:
    running(gateway, listed("1"))
    with pytest.raises(Refused, match="pod restart web-0 -s shop"):
        await PlansClient(gateway=gateway).end_task(WEB.task_id)
    running(gateway, listed("1"))
    with pytest.raises(TaskNotFound, match="did you mean"):
        await PlansClient(gateway=gateway).end_task("shop__web-0-server__9")
