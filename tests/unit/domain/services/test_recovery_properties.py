"""What holds of the recovery book whatever happens."""

from collections.abc import Sequence
from datetime import datetime

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from builders.clock import NOW, at, seconds
from builders.tasks import by_name, record
from properties import examples
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.leases import LeaseState
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.book import (
    RecoveryBook,
    RecoveryDecision,
    RecoveryReport,
    RecoverySituation,
    decide,
    leased_to_others,
)
from temporal_plans.domain.services.recovery.delay import RestartDelay
from temporal_plans.domain.services.recovery.failed import down_times, failed_pods
from temporal_plans.domain.tasks.statuses import TaskState
from unit.domain.services.recovery_decisions import (
    POLICY,
    SPEC,
    lease,
)

# --- whatever happens ----------------------------------------------------------------------------


class Life(RuleBasedStateMachine):
    """A service, its recovery plan and others at work, each hearing of the rest late.

    ``sent`` are revisions on their way to the plan, ``report`` the last that it said.
    """

    pods = st.integers(0, 1)
    tasks = st.sampled_from(["server", "n1", "n2"])

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.launches = 1
        self.records = by_name(
            *(record("hello", i, t) for i in (0, 1) for t in ("server", "n1", "n2"))
        )
        self.delays: dict[str, RestartDelay] = {}
        self.down: dict[str, datetime] = {}
        self.book = RecoveryBook()
        self.sent: list[tuple[int, RecoveryDecision]] = []
        self.phases: dict[str, PhaseSpec] = {}
        self.complete: set[str] = set()
        self.taken = 0
        self.report = RecoveryReport()
        self.deploying: set[int] = set()

    # the cluster

    @rule(index=pods, name=tasks, state=st.sampled_from([TaskState.FAILED, TaskState.LOST]))
    def fail(self, index: int, name: str, state: TaskState) -> None:
        old = self.records[f"hello-{index}-{name}"]
        self._put(old.but(status=record("hello", index, name, state).status))

    @rule(index=pods, name=tasks, length=st.floats(1, 30))
    def back_off(self, index: int, name: str, length: float) -> None:
        key = f"hello-{index}-{name}"
        self.delays[key] = RestartDelay(
            delay=seconds(length), until=at(self.now + length), failures=1, since=NOW
        )

    @rule(index=pods)
    def come_back(self, index: int) -> None:
        for one in self._of(index):
            if one.status is not None and one.status.state is TaskState.LOST:
                self._put(one.but(status=record("hello", index, one.task).status))

    @rule(length=st.sampled_from([1.0, 20.0, 150.0]))
    def wait(self, length: float) -> None:
        self.now += length

    # operators

    @rule(index=pods)
    def restart(self, index: int) -> None:
        self.delays = {k: v for k, v in self.delays.items() if not k.startswith(f"hello-{index}")}
        self.book = self.book.restarted("hello", index)
        for one in self._of(index):
            self._put(one.but(status=record("hello", index, one.task, TaskState.KILLED).status))

    @rule(index=pods)
    def replace(self, index: int) -> None:
        self.restart(index)
        for one in self._of(index):
            self._put(one.but(permanently_failed=True))

    # the deployment

    @rule(index=pods)
    def deploy(self, index: int) -> None:
        self.deploying.add(index)

    @rule(index=pods)
    def deployed(self, index: int) -> None:
        if index in self.deploying:
            self._launch(index, ("server", "n1", "n2"), "deploy", "c1")
            self.deploying.discard(index)

    # the recovery plan

    @rule()
    def take_revision(self) -> None:
        if self.sent:
            self.taken, decision = self.sent.pop(0)
            for name in decision.drop:
                self.phases.pop(name, None)
            for put in decision.put:
                self.phases[put.spec.name] = put.spec
                self.complete.discard(put.spec.name)

    @rule(data=st.data())
    def launch(self, data: st.DataObject) -> None:
        open_phases = sorted(set(self.phases) - self.complete)
        if open_phases:
            self._work(data.draw(st.sampled_from(open_phases)))

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        open_phases = sorted(set(self.phases) - self.complete)
        if open_phases:
            self.complete.add(data.draw(st.sampled_from(open_phases)))

    @rule()
    def tell(self) -> None:
        incomplete = tuple(name for name in self.phases if name not in self.complete)
        self.report = RecoveryReport(revision=self.taken, incomplete=incomplete)

    def _work(self, name: str) -> None:
        work = self.phases[name].steps[0].work
        assert isinstance(work, PodWork)
        if work.index not in self.deploying:  # it has no lease
            self._launch(work.index, work.tasks, "recovery", work.config_id)

    # the service

    @rule()
    def decide(self) -> None:
        decision = self._decide(self.book)
        self.book = decision.book
        if decision.revises:
            self.sent.append((decision.book.revision, decision))
        for put in decision.put:
            work = put.spec.steps[0].work
            assert isinstance(work, PodWork)
            assert work.index not in self.deploying
        again = self._decide(self.book)
        assert (again.book, again.revises) == (self.book, False)

    def _decide(self, book: RecoveryBook) -> RecoveryDecision:
        self.down = down_times(self.records, self.down, at(self.now))
        failed = failed_pods(
            self.records,
            {"c1": SPEC},
            launchable=None,
            overrides={},
            delays=self.delays,
            policy=POLICY,
            down_since=self.down,
            pending_configs=book.pending_configs(self.report),
            now=at(self.now),
        )
        held = tuple(lease("deploy", "server", "n1", "n2", index=i) for i in sorted(self.deploying))
        return decide(
            book,
            failed,
            self.report,
            RecoverySituation(service=SPEC, records=self.records),
            busy=leased_to_others(LeaseState(held=held), priority=1),
            policy=POLICY,
            now=at(self.now),
        )

    def _of(self, index: int) -> list[TaskRecord]:
        return [one for one in self.records.values() if one.index == index]

    def _put(self, one: TaskRecord) -> None:
        self.records[one.name] = one

    def _launch(self, index: int, tasks: Sequence[str], plan: str, config: str) -> None:
        self.launches += 1
        for name in tasks:
            self._put(record("hello", index, name, plan=plan, launch=self.launches, config=config))

    @invariant()
    def no_two_recoveries_of_one_pod(self) -> None:
        """Neither in the book nor, whatever is still on its way, in the plan."""
        instances = [one.instance for one in self.book.recoveries if self.report.open(one)]
        assert len(instances) == len(set(instances))
        works = [self.phases[name].steps[0].work for name in set(self.phases) - self.complete]
        indexes = [work.index for work in works if isinstance(work, PodWork)]
        assert len(indexes) == len(set(indexes))

    def teardown(self) -> None:
        """Left in peace, everything runs again, and no recovery is left over."""
        for index in (0, 1):
            self.deployed(index)
        for _ in range(12):
            self.now += 1000
            self.decide()
            while self.sent:
                self.take_revision()
            for name in sorted(set(self.phases) - self.complete):
                self._work(name)
                self.complete.add(name)
            self.tell()
        assert not self._decide(self.book).revises
        assert all(one.reached_goal for one in self.records.values())
        assert not any(one.permanently_failed for one in self.records.values())
        assert not any(self.report.open(one) for one in self.book.recoveries)


TestLife = Life.TestCase
TestLife.settings = examples(60, stateful_step_count=40)
