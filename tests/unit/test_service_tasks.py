"""What a Service makes of launches that nobody speaks of."""

from datetime import UTC, datetime, timedelta

import pytest

from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.service import Goal
from temporal_plans.domain.task import TaskRef, TaskState, TaskStatus
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.messages.service import ServiceState
from temporal_plans.workflows.service_tasks import HEARD_WITHIN, ServiceTasks

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = timedelta(seconds=1)
RUNNING = TaskStatus(
    task_id="hello-0-1", name="hello-0-server", state=TaskState.RUNNING, sequence=1, at=NOW
)


def tasks(status: TaskStatus | None = None) -> ServiceTasks:
    record = TaskRecord(
        task_id="hello-0-1",
        name="hello-0-server",
        pod="hello",
        index=0,
        task="server",
        goal=Goal.RUNNING,
        resource_set="main",
        agent="one",
        hostname="one.example",
        config_id="c1",
        owner="hello/deploy/hello/hello-0:[server]",
        step="hello/deploy/hello/hello-0:[server]",
        launched=NOW,
        status=status,
        kills=(TaskRef(task_id="hello-0-0", agent="one"),),
    )
    return ServiceTasks(ServiceState(tasks={record.name: record}))


def leased(*names: str) -> LeaseState:
    lease = Lease(plan="deploy", phase="p", step=0, pod="hello", index=0, tasks=names)
    return LeaseState(held=(lease,))


def test_a_launch_that_nobody_carries_out_is_lost_after_a_while() -> None:
    lost, due = tasks().never_heard_of(LeaseState(), NOW + HEARD_WITHIN)
    assert [(one.task_id, one.state) for one in lost] == [("hello-0-1", TaskState.LOST)]
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
    service = tasks()
    [lost] = service.never_heard_of(LeaseState(), NOW + HEARD_WITHIN)[0]
    assert service.take(lost).record is not None
    news = service.take(RUNNING.model_copy(update={"sequence": 0}))
    assert news.record is not None
    assert news.record.live
