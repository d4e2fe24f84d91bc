"""What a Service makes of launches that nobody speaks of."""

from datetime import datetime, timedelta

import pytest

from builders.clock import NOW
from builders.pools import reservation
from builders.services import pod, service, task
from builders.tasks import by_name, record_of
from temporal_plans.domain.plans.leases import Lease, LeaseState
from temporal_plans.domain.services.launch import LaunchIntent, LaunchTarget
from temporal_plans.domain.services.records import EARLIER_LIMIT
from temporal_plans.domain.services.task_book import (
    REPLACED_LIMIT,
    STRANGERS_LIMIT,
    StatusEffect,
    TaskBook,
)
from temporal_plans.domain.services.unreported import REPORT_TIMEOUT
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus

MOMENT = timedelta(seconds=1)
SPEC = service(pod("hello", 1))
RUNNING = record_of(SPEC, "hello", 0).status
SPEC_OF_THREE = service(pod("hello", 1, task("first"), task("second"), task("third")))
ENDED = record_of(SPEC, "hello", 0, TaskState.FINISHED).status


def tasks(status: TaskStatus | None = None) -> TaskBook:
    before = TaskRef(task_id="svc__hello-0-server__0", agent="a0", queue="q")
    launch = record_of(SPEC, "hello", 0, None, status=status, kills=(before,))
    return TaskBook(dict(by_name(launch)), {}, {}, {})


def leased(*names: str) -> LeaseState:
    lease = Lease(plan="deploy", phase="p", step=0, pod="hello", index=0, tasks=names)
    return LeaseState(held=(lease,))


def test_a_launch_that_nobody_carries_out_is_lost_after_a_while() -> None:
    lost, due = tasks().expired_launches(LeaseState(), NOW + REPORT_TIMEOUT)
    assert [(one.task_id, one.state) for one in lost] == [
        ("svc__hello-0-server__1", TaskState.LOST)
    ]
    assert due is None


CARED_FOR = [
    pytest.param(None, LeaseState(), REPORT_TIMEOUT - MOMENT, NOW + REPORT_TIMEOUT, id="not-yet"),
    pytest.param(None, leased("server"), 2 * REPORT_TIMEOUT, None, id="its-step-is-at-work"),
    pytest.param(RUNNING, LeaseState(), 2 * REPORT_TIMEOUT, None, id="it-was-heard-of"),
]


@pytest.mark.parametrize(("status", "leases", "later", "due"), CARED_FOR)
def test_others_are_left_alone(
    status: TaskStatus | None, leases: LeaseState, later: timedelta, due: datetime | None
) -> None:
    assert tasks(status).expired_launches(leases, NOW + later) == ((), due)


def test_a_lease_of_another_task_of_the_pod_keeps_nothing_alive() -> None:
    lost, _ = tasks().expired_launches(leased("other"), NOW + REPORT_TIMEOUT)
    assert len(lost) == 1


def relaunched(known: TaskBook, number: int) -> TaskRef:
    """Record a launch; return it as its agent's statuses name it."""
    launched(known, number)
    return TaskRef(task_id=f"svc__hello-0-server__{number}", agent="a0", queue="queue-a0")


def reported(task: TaskRef, state: TaskState = TaskState.RUNNING) -> TaskStatus:
    assert RUNNING is not None
    return RUNNING.but(task_id=task.task_id, agent=task.agent, queue=task.queue, state=state)


def test_a_replaced_launch_that_reports_is_killed_on_the_queue_that_its_status_names() -> None:
    known = tasks()
    old = relaunched(known, 8)
    for number in range(9, 9 + 2 * EARLIER_LIMIT):
        relaunched(known, number)
    assert known.take(reported(old)).zombie == old
    assert known.take(reported(old.but(queue=""))).zombie == old.but(queue="")
    assert known.take(reported(old.but(agent=""))).zombie is None
    assert known.take(reported(old, TaskState.KILLED)).zombie is None
    assert not known.strangers


def test_an_erased_task_that_reports_is_killed() -> None:
    known = tasks()
    old = relaunched(known, 8)
    known.erase("hello-0-server")
    assert known.take(reported(old)).zombie == old


def test_a_task_that_was_never_launched_is_listed_until_it_ends() -> None:
    """This state may be older than the task: its server was restored from a backup."""
    known = tasks()
    relaunched(known, 8)
    stranger = TaskRef(task_id="svc__hello-0-server__99", agent="a0", queue="queue-a0")
    assert known.take(reported(stranger)) == StatusEffect()
    assert known.strangers_of() == (stranger,) == known.strangers_of(["hello-0-server"])
    assert known.strangers_of(["hello-1-server"]) == ()
    assert known.is_unreported(reported(stranger, TaskState.KILLED))
    known.take(reported(stranger, TaskState.KILLED))
    assert known.strangers_of() == ()


def test_a_launch_ends_what_runs_in_its_place() -> None:
    """A deployment or an operator asked for it; recovery asks for none beside a stranger."""
    known = tasks()
    stranger = TaskRef(task_id="svc__hello-0-server__99", agent="a0", queue="queue-a0")
    known.take(reported(stranger))
    relaunched(known, 100)
    assert stranger in known.records["hello-0-server"].kills


def test_strangers_on_an_agent_that_is_lost_are_forgotten() -> None:
    known = tasks()
    for agent in ("a0", "a1"):
        known.take(reported(TaskRef(task_id=f"svc__hello-0-server__{agent}", agent=agent)))
    known.remember_lost("a0", NOW)
    assert [task.agent for task in known.strangers_of()] == ["a1"]


def test_what_is_remembered_of_launches_is_bounded() -> None:
    known = tasks()
    for number in range(REPLACED_LIMIT + 10):
        relaunched(known, number)
        known.take(reported(TaskRef(task_id=f"svc__hello-0-server__x{number}", agent="a0")))
    assert len(known.replaced) == REPLACED_LIMIT
    assert len(known.strangers) == STRANGERS_LIMIT


def test_an_answer_to_a_kill_counts_when_the_agent_has_no_such_task() -> None:
    """Then it reports nothing else."""
    known = tasks(RUNNING)
    assert RUNNING is not None
    answer = RUNNING.but(state=TaskState.KILLED, sequence=1_700_000_000)
    assert not known.is_unreported(answer)
    assert known.is_unreported(answer.but(unknown=True))
    known.take(answer.but(unknown=True))
    assert not known.records["hello-0-server"].live


def test_what_is_lost_keeps_the_queue_of_its_agent() -> None:
    [lost] = tasks().lost_with("a0", NOW)
    assert (lost.agent, lost.queue) == ("a0", "queue-a0")


def test_its_agent_may_still_speak_of_it() -> None:
    """By our word it is lost; the agent knows better."""
    assert RUNNING is not None
    known = tasks()
    [lost] = known.expired_launches(LeaseState(), NOW + REPORT_TIMEOUT)[0]
    assert known.take(lost).record is not None
    news = known.take(RUNNING)
    assert news.record is not None
    assert news.record.live


HELD = reservation("hello", 0)


def two_of_three(**second: object) -> TaskBook:
    """``first`` and ``second`` of ``hello-0`` run. ``second`` is said of the latter's record."""
    records = [record_of(SPEC_OF_THREE, "hello", 0, name=name) for name in ("first", "second")]
    records[1] = records[1].but(**second)
    return TaskBook(dict(by_name(*records)), {HELD.key: HELD}, {}, {})


def in_use(launched: str, /, **second: object) -> tuple[str, ...]:
    """What is in use while that task of ``hello-0`` is launched."""
    target = LaunchTarget(pod="hello", index=0, tasks=(launched,))
    return two_of_three(**second).sets_in_use(SPEC_OF_THREE, target)


def test_sets_of_tasks_that_run_on_are_in_use() -> None:
    assert in_use("first") == ("second-resource-set",)
    assert in_use("third") == ("first-resource-set", "second-resource-set")


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"status": ENDED}, id="ended"),
        pytest.param({"retired": True}, id="no-plan-has-it"),
        pytest.param({"agent": "a1"}, id="elsewhere"),
        pytest.param({"resource_set": "first-resource-set"}, id="makes-room"),
    ],
)
def test_others_are_not(second: dict[str, object]) -> None:
    assert in_use("first", **second) == ()


@pytest.mark.parametrize(
    ("second", "killed"),
    [
        pytest.param({}, ["first"], id="others-run-on"),
        pytest.param({"retired": True}, ["first", "second"], id="no-plan-has-it"),
        pytest.param({"retired": True, "status": ENDED}, ["first"], id="and-it-is-gone"),
        pytest.param({"resource_set": "first-resource-set"}, ["first", "second"], id="its-set"),
    ],
)
def test_what_ends_before_a_launch(second: dict[str, object], killed: list[str]) -> None:
    launch = LaunchIntent(
        owner="plan",
        step="plan/phase/step",
        pod="hello",
        index=0,
        config_id="new",
        reservation=HELD,
        tasks=(TaskLaunch(task_id="svc__hello-0-first__2", task="first"),),
    )
    order = two_of_three(**second).record_launch(launch, SPEC_OF_THREE.pod("hello"), NOW)
    assert [one.task_id for one in order.kill] == [f"svc__hello-0-{name}__1" for name in killed]


def launched(book: TaskBook, number: int) -> None:
    """Record the launch of ``hello-0-server`` with that number."""
    task_id = f"svc__hello-0-server__{number}"
    intent = LaunchIntent(
        config_id="old",
        owner="",
        step="",
        pod="hello",
        index=0,
        tasks=(TaskLaunch(task_id=task_id, task="server"),),
        reservation=HELD,
    )
    for _ in range(2):  # it is idempotent
        book.record_launch(intent, SPEC.pod("hello"), NOW)


def test_a_record_keeps_some_launches_before_the_newest() -> None:
    book = TaskBook({}, {}, {}, {})
    for number in range(1, 8):
        launched(book, number)
    record = book.records["hello-0-server"]
    assert record.launches == 7
    assert [launch.task_id[-1] for launch in record.earlier] == ["6", "5", "4", "3"]
    assert record.with_texts_of(10).earlier == ()


def test_the_end_of_an_earlier_launch_is_kept() -> None:
    """It is killed after the next launch was recorded."""
    assert RUNNING is not None
    book = TaskBook({}, {}, {}, {})
    launched(book, 1)
    book.take(RUNNING)
    launched(book, 2)
    killed = RUNNING.but(state=TaskState.KILLED, sequence=5, message="x" * 500)
    assert book.take(killed) == (None, None)
    record = book.records["hello-0-server"]
    assert record.status is None
    [earlier] = record.earlier
    assert earlier.status is not None
    assert (earlier.status.state, len(earlier.status.message)) == (TaskState.KILLED, 100)
