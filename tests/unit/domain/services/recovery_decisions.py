"""A service, its failed pods, and what the recovery book decides."""

from collections.abc import Sequence

from builders.clock import at, seconds
from builders.services import pod, service, task
from builders.tasks import by_name, record
from temporal_plans.domain.plans.leases import Lease
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.book import (
    Busy,
    Recoverer,
    RecoveryBook,
    RecoveryDecision,
    RecoveryReport,
    RecoverySituation,
    decide,
)
from temporal_plans.domain.services.recovery.failed import FailedPod
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.tasks.statuses import TaskState

SPEC = service(
    pod("hello", 3, task("server"), task("n1", essential=False), task("n2", essential=False))
)
POLICY = RecoveryPolicy(permanent_failure_timeout=seconds(100), min_replace_delay=seconds(10))

DOWN = FailedPod(
    pod="hello", index=0, tasks=("server",), failed=("server",), config_id="c1", why="it FAILED"
)
RECORDS = by_name(*(record("hello", i, "server", TaskState.FAILED) for i in range(3)))


def nobody(_: FailedPod) -> bool:
    return False


def taken(book: RecoveryBook, *incomplete: str) -> RecoveryReport:
    """The plan has taken all revisions, and these phases are not complete."""
    return RecoveryReport(revision=book.revision, incomplete=incomplete)


def decided(
    book: RecoveryBook,
    *failed: FailedPod,
    report: RecoveryReport = RecoveryReport(),  # noqa: B008
    records: dict[str, TaskRecord] = RECORDS,
    busy: Busy = nobody,
    now: float = 0,
    unwanted: frozenset[str] = frozenset(),
    recoverers: Sequence[Recoverer] = (),
) -> RecoveryDecision:
    """The decision, and asked again it must change nothing."""
    situation = RecoverySituation(service=SPEC, records=records)

    def ask(book: RecoveryBook) -> RecoveryDecision:
        return decide(
            book,
            failed,
            report,
            situation,
            busy=busy,
            policy=POLICY,
            now=at(now),
            unwanted=unwanted,
            recoverers=recoverers,
        )

    first = ask(book)
    again = ask(first.book)
    assert (again.book, again.revises) == (first.book, False)
    return first


def names(decision: RecoveryDecision) -> list[str]:
    return [phase.spec.name for phase in decision.put]


EMPTY = RecoveryBook()
SERVER = "hello-0:[server]"


def lease(plan: str, *tasks: str, index: int = 0, priority: int = 0) -> Lease:
    phase = f"svc/{plan}/p"
    return Lease(
        plan=plan, phase=phase, step=0, pod="hello", index=index, tasks=tasks, priority=priority
    )
