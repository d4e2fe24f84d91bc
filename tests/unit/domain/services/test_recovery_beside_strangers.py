"""Recovery, when tasks run that the service has no memory of: its server was restored from a
backup."""

from builders.clock import NOW
from builders.tasks import by_name, record
from temporal_plans.domain.owners.runs import RunBook, RunHistory
from temporal_plans.domain.plans.leases import LeaseState
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.recovery.keeper import (
    RecoveryKeeper,
    RecoveryRules,
    RecoveryState,
    RecoveryWorld,
)
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from unit.domain.services.recovery_decisions import POLICY, SPEC

STRANGER = TaskStatus(
    task_id="svc__hello-0-server__tomorrow",
    name="hello-0-server",
    state=TaskState.RUNNING,
    sequence=1,
    at=NOW,
    agent="a1",
    queue="agent/a1",
)
WORK = {"kind": "pod", "pod": "hello", "tasks": ["server"]}
STEPS = {str(i): {"work": {**WORK, "index": i}} for i in (0, 1)}
PLAN = PlanSpec.model_validate({"name": "deploy", "phases": {"hello": {"steps": STEPS}}})
WORLD = RecoveryWorld(
    target=SPEC, specs={"c1": SPEC}, plans={"deploy": PLAN}, leases=LeaseState(), policy=POLICY
)


def recovered(book: TaskBook) -> list[str]:
    """The phases that recovery begins."""
    keeper = RecoveryKeeper(
        RecoveryState(), tasks=book, runs=RunBook(RunHistory()), rules=RecoveryRules()
    )
    return [phase.spec.name for phase in keeper.tend(WORLD, NOW).put]


def test_nothing_is_launched_beside_them_until_they_end_or_an_operator_says_so() -> None:
    failed = by_name(*(record("hello", i, "server", TaskState.FAILED) for i in (0, 1)))
    book = TaskBook(failed, {}, {}, {})
    assert recovered(book) == ["hello-0:[server]", "hello-1:[server]"]
    book.take(STRANGER)
    assert recovered(book) == ["hello-1:[server]"]
    book.mark_for_replacement("hello", 0)
    assert recovered(book) == ["hello-0:[server]", "hello-1:[server]"]
    book = TaskBook(failed, {}, {}, {}, strangers=book.strangers)
    book.take(STRANGER.but(state=TaskState.KILLED, sequence=2))
    assert recovered(book) == ["hello-0:[server]", "hello-1:[server]"]
