"""What a Service makes of launches that nobody speaks of."""

from datetime import datetime, timedelta

import pytest

from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.task import TaskRef, TaskState, TaskStatus
from temporal_plans.messages.cluster import LaunchIntent, TaskLaunch
from temporal_plans.messages.service import LaunchTarget, ServiceState
from temporal_plans.workflows.service_tasks import ServiceTasks
from temporal_plans.workflows.unheard import HEARD_WITHIN
from unit.services import NOW, by_name, pod, record, service, task

MOMENT = timedelta(seconds=1)
SPEC = service(pod("hello", 1))
RUNNING = record(SPEC, "hello", 0).status
SPEC_OF_THREE = service(pod("hello", 1, task("first"), task("second"), task("third")))
ENDED = record(SPEC, "hello", 0, TaskState.FINISHED).status


def tasks(status: TaskStatus | None = None) -> ServiceTasks:
    before = TaskRef(task_id="svc__hello-0-server__0", agent="a0")
    launch = record(SPEC, "hello", 0, None, status=status, kills=(before,))
    return ServiceTasks(ServiceState(tasks=dict(by_name(launch))))


def leased(*names: str) -> LeaseState:
    lease = Lease(plan="deploy", phase="p", step=0, pod="hello", index=0, tasks=names)
    return LeaseState(held=(lease,))


def test_a_launch_that_nobody_carries_out_is_lost_after_a_while() -> None:
    lost, due = tasks().never_heard_of(LeaseState(), NOW + HEARD_WITHIN)
    assert [(one.task_id, one.state) for one in lost] == [
        ("svc__hello-0-server__1", TaskState.LOST)
    ]
    assert due is None


CARED_FOR = [
    pytest.param(None, LeaseState(), HEARD_WITHIN - MOMENT, NOW + HEARD_WITHIN, id="not-yet"),
    pytest.param(None, leased("server"), 2 * HEARD_WITHIN, None, id="its-step-is-at-work"),
    pytest.param(RUNNING, LeaseState(), 2 * HEARD_WITHIN, None, id="it-was-heard-of"),
]


@pytest.mark.parametrize(("status", "leases", "later", "due"), CARED_FOR)
def test_others_are_left_alone(
    status: TaskStatus | None, leases: LeaseState, later: timedelta, due: datetime | None
) -> None:
    assert tasks(status).never_heard_of(leases, NOW + later) == ((), due)


def test_a_lease_of_another_task_of_the_pod_keeps_nothing_alive() -> None:
    lost, _ = tasks().never_heard_of(leased("other"), NOW + HEARD_WITHIN)
    assert len(lost) == 1


def test_its_agent_may_still_speak_of_it() -> None:
    """By our word it is lost; the agent knows better."""
    assert RUNNING is not None
    known = tasks()
    [lost] = known.never_heard_of(LeaseState(), NOW + HEARD_WITHIN)[0]
    assert known.take(lost).record is not None
    news = known.take(RUNNING)
    assert news.record is not None
    assert news.record.live


HELD = Reservation(
    id="r", owner="service/svc", pod="hello", index=0, agent="a0", hostname="h", created=NOW
)


def two_of_three(**second: object) -> ServiceTasks:
    """``first`` and ``second`` of ``hello-0`` run. ``second`` is said of the latter's record."""
    records = [record(SPEC_OF_THREE, "hello", 0, name=name) for name in ("first", "second")]
    records[1] = records[1].but(**second)
    state = ServiceState(tasks=dict(by_name(*records)), reservations={HELD.key: HELD})
    return ServiceTasks(state)


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
        pytest.param({"off": True}, id="no-plan-has-it"),
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
        pytest.param({"off": True}, ["first", "second"], id="no-plan-has-it"),
        pytest.param({"off": True, "status": ENDED}, ["first"], id="and-it-is-gone"),
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
    order = two_of_three(**second).intend(launch, SPEC_OF_THREE.pod("hello"), NOW)
    assert [one.task_id for one in order.kill] == [f"svc__hello-0-{name}__1" for name in killed]
