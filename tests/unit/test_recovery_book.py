"""What is under way, and how the recovery plan is revised (reference 6.1, 6.4, 6.10)."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from temporal_plans.domain.board import PhaseBoard, PlanBoard
from temporal_plans.domain.leases import Lease, LeaseState
from temporal_plans.domain.names import MAX_NAME
from temporal_plans.domain.plan import PhaseSpec, PlanSpec, PodWork, SleepWork, StepSpec
from temporal_plans.domain.plan_check import problems
from temporal_plans.domain.recovery import FailedPod, down_times, failed_pods
from temporal_plans.domain.recovery_book import (
    Busy,
    Recoverer,
    RecoveryBook,
    RecoveryDecision,
    RecoveryReport,
    RecoverySituation,
    decide,
    leased_to_others,
    recovery_phase,
)
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.restart_delay import RestartDelay
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskState
from temporal_plans.domain.task_record import TaskRecord
from temporal_plans.domain.transitions import delay_left, due
from unit.recovery_kit import NOW, at, by_name, pod, record, seconds, service, task

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


# --- the default phase ---------------------------------------------------------------------------


def test_one_phase_of_one_step_of_the_same_name() -> None:
    spec, state = recovery_phase(DOWN)
    (step,) = spec.steps
    assert (spec.name, step.name, spec.strategy.name) == (SERVER, SERVER, "parallel")
    assert step.work == DOWN.work()
    assert PhaseBoard(spec, state).status is Status.PENDING
    assert not problems(PlanSpec(name="recovery", phases=(spec,)))


def test_it_is_delayed_and_waits_that_out() -> None:
    pod_down = DOWN.but(delayed_until=at(9), delays={"hello-0-server": seconds(8)})
    spec, state = recovery_phase(pod_down)
    board = PlanBoard(PlanSpec(name="recovery", phases=(spec,)))
    board.take(0, state)
    (step,) = board.phases[0].steps
    assert (board.status, step.shown, step.reason) == (Status.DELAYED, Status.DELAYED, "it FAILED")
    assert delay_left(step, NOW) == seconds(9)
    assert due(step).status is Status.PENDING
    assert due(step).delayed_until is None
    assert due(step).delays == {"hello-0-server": seconds(8)}


def test_names_of_many_tasks_are_cut_and_stay_apart() -> None:
    many = tuple(f"task-{i:03}" for i in range(90))
    specs = [recovery_phase(DOWN.but(tasks=tasks)).spec for tasks in (many, many[:-1])]
    assert len({spec.name for spec in specs}) == 2
    assert all(len(spec.name) <= MAX_NAME for spec in specs)
    assert not problems(PlanSpec(name="recovery", phases=tuple(specs)))


# --- what is put, left alone and dropped ---------------------------------------------------------


def test_nothing_to_do() -> None:
    decision = decided(EMPTY)
    assert (decision.book, decision.revises) == (EMPTY, False)


def test_a_failure_is_recovered_once() -> None:
    first = decided(EMPTY, DOWN)
    assert (names(first), first.drop, first.book.revision) == ([SERVER], (), 1)
    for report in (RecoveryReport(), taken(first.book, SERVER)):
        assert not decided(first.book, DOWN, report=report).revises


def test_what_is_over_gives_its_place_to_the_next() -> None:
    first = decided(EMPTY, DOWN)
    again = decided(first.book, DOWN, report=taken(first.book))
    assert (names(again), again.drop, again.book.revision) == ([SERVER], (), 2)
    wider = DOWN.but(tasks=("server", "n1"))
    other = decided(again.book, wider, report=taken(again.book))
    assert (names(other), other.drop) == (["hello-0:[server, n1]"], (SERVER,))


def test_what_is_over_stays_beside_a_recovery_of_other_tasks() -> None:
    first = decided(EMPTY, DOWN.but(tasks=("n1",)))
    second = decided(first.book, DOWN.but(tasks=("n2",)), report=taken(first.book))
    assert (names(second), second.drop) == (["hello-0:[n2]"], ())


def test_several_pods_at_once() -> None:
    both = decided(EMPTY, DOWN, DOWN.but(index=1))
    assert (names(both), both.book.revision) == ([SERVER, "hello-1:[server]"], 1)


def test_it_escalates_once() -> None:
    first = decided(EMPTY, DOWN)
    escalated = decided(first.book, DOWN.but(permanent=True), report=taken(first.book, SERVER))
    assert names(escalated) == [SERVER]
    assert escalated.put[0].spec.steps[0].work == DOWN.but(permanent=True).work()
    report = taken(escalated.book, SERVER)
    assert not decided(escalated.book, DOWN.but(permanent=True), report=report).revises
    assert not decided(escalated.book, DOWN, report=report).revises


def launched_anew(plan: str = "recovery", launch: int = 2, **more: bool) -> dict[str, TaskRecord]:
    new = record("hello", 0, "server", plan=plan, launch=launch, **more)  # type: ignore[arg-type]
    return {**RECORDS, new.name: new}


def test_a_replacement_that_failed_is_replaced_again() -> None:
    gone = DOWN.but(permanent=True, ordered=True)
    first = decided(EMPTY, gone)
    report = taken(first.book, SERVER)
    records = launched_anew(permanently_failed=True)
    again = decided(first.book, gone, report=report, records=records)
    assert names(again) == [SERVER]


def test_what_it_launched_is_its_own_business() -> None:
    first = decided(EMPTY, DOWN)
    report = taken(first.book, SERVER)
    assert not decided(first.book, report=report, records=launched_anew()).revises
    failing = DOWN.but(delayed_until=at(5))
    assert not decided(first.book, failing, report=report, records=launched_anew()).revises


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(RECORDS, id="came back by itself"),
        pytest.param(launched_anew(plan="deploy"), id="somebody else launched it"),
    ],
)
def test_a_recovery_that_nobody_needs_any_more_goes(records: dict[str, TaskRecord]) -> None:
    first = decided(EMPTY, DOWN)
    gone = decided(first.book, report=taken(first.book, SERVER), records=records)
    assert (gone.put, gone.drop, gone.book.recoveries) == ((), (SERVER,), ())


def test_what_was_called_off_may_not_launch_any_more() -> None:
    """Its step may have its pod by the time that the plan hears of it."""
    step = "/folder/svc/recovery/hello-0:[server]/hello-0:[server]"
    assert RecoveryBook().called_off(step)
    assert not RecoveryBook().called_off(step.replace("recovery", "deploy"))
    assert not RecoveryBook().called_off("")
    wanted = decided(RecoveryBook(), DOWN).book
    assert not wanted.called_off(step)
    running = RECORDS | by_name(record("hello", 0, "server", TaskState.RUNNING))
    report = taken(wanted, "hello-0:[server]")
    assert decided(wanted, report=report, records=running).book.called_off(step)


def test_what_is_taken_away_is_not_brought_back() -> None:
    first = decided(EMPTY, DOWN)
    report = taken(first.book, SERVER)
    unwanted = frozenset({"hello-0-server"})
    gone = decided(first.book, report=report, records=launched_anew(), unwanted=unwanted)
    assert gone.drop == (SERVER,)


def test_more_of_the_pod_failed_before_anything_was_launched() -> None:
    first = decided(EMPTY, DOWN.but(tasks=("n1",), failed=("n1",)))
    wider = decided(
        first.book, DOWN.but(tasks=("server", "n1")), report=taken(first.book, "hello-0:[n1]")
    )
    assert (names(wider), wider.drop) == (["hello-0:[server, n1]"], ("hello-0:[n1]",))


def test_another_task_of_the_pod_is_due_first() -> None:
    later = DOWN.but(tasks=("n1",), failed=("n1",), delayed_until=at(60))
    first = decided(EMPTY, later)
    sooner = DOWN.but(tasks=("n2",), failed=("n2",))
    second = decided(first.book, sooner, report=taken(first.book, "hello-0:[n1]"))
    assert (names(second), second.drop) == (["hello-0:[n2]"], ("hello-0:[n1]",))


def test_one_recovery_of_a_pod_at_a_time_takes_over_what_it_replaces() -> None:
    first = decided(EMPTY, DOWN.but(tasks=("n1",), failed=("n1",)))
    records = by_name(
        record("hello", 0, "n1", plan="recovery", launch=2),
        record("hello", 0, "n2", TaskState.FAILED),
    )
    second = decided(
        first.book,
        DOWN.but(tasks=("n2",), failed=("n2",)),
        report=taken(first.book, "hello-0:[n1]"),
        records=records,
    )
    assert (names(second), second.drop) == (["hello-0:[n2, n1]"], ("hello-0:[n1]",))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(DOWN.but(delayed_until=at(60)), DOWN, id="its back-off was lifted"),
        pytest.param(DOWN, DOWN.but(delayed_until=at(60)), id="a sibling backs off"),
        pytest.param(DOWN, DOWN.but(config_id="c2"), id="its configuration has another id"),
    ],
)
def test_what_was_put_wrong_is_put_again(before: FailedPod, after: FailedPod) -> None:
    first = decided(EMPTY, before)
    again = decided(first.book, after, report=taken(first.book, SERVER))
    assert (names(again), again.put[0].spec) == ([SERVER], recovery_phase(after).spec)


def test_a_back_off_that_is_over_changes_nothing() -> None:
    first = decided(EMPTY, DOWN.but(delayed_until=at(60)))
    assert not decided(first.book, DOWN, report=taken(first.book, SERVER), now=60).revises


def test_afresh() -> None:
    first = decided(EMPTY, DOWN)
    report = taken(first.book, SERVER)
    asked = first.book.afresh("hello", 0)
    assert not decided(asked, report=report, records=launched_anew()).revises
    again = decided(asked, DOWN, report=report, records=launched_anew())
    assert names(again) == [SERVER]
    assert not any(one.afresh for one in again.book.recoveries)
    assert first.book.afresh("hello", 1) == first.book


def test_a_plan_that_was_lost_is_filled_again() -> None:
    first = decided(EMPTY, DOWN)
    again = decided(first.book.emptied(), DOWN, report=taken(first.book))
    assert (names(again), again.book.revision) == ([SERVER], 2)


def test_configurations_that_are_still_needed() -> None:
    first = decided(EMPTY, DOWN)
    assert first.book.promised(RecoveryReport()) == {("hello", 0): "c1"}
    assert first.book.promised(taken(first.book)) == {}


def test_the_book_does_not_grow_for_ever() -> None:
    book = EMPTY
    for index in range(300):
        book = decided(book, DOWN.but(index=index), report=taken(book)).book
    assert (len(book.recoveries), book.revision) == (101, 300)


# --- others at work ------------------------------------------------------------------------------


def lease(plan: str, *tasks: str, index: int = 0, priority: int = 0) -> Lease:
    phase = f"svc/{plan}/p"
    return Lease(
        plan=plan, phase=phase, step=0, pod="hello", index=index, tasks=tasks, priority=priority
    )


@pytest.mark.parametrize(
    ("state", "busy"),
    [
        pytest.param(LeaseState(), False, id="nobody"),
        pytest.param(LeaseState(held=(lease("deploy", "server"),)), True, id="deploy"),
        pytest.param(LeaseState(held=(lease("deploy", "n1"),)), False, id="on another task"),
        pytest.param(LeaseState(held=(lease("deploy", "server", index=1),)), False, id="pod"),
        pytest.param(LeaseState(held=(lease("custom", "server", priority=9),)), True, id="custom"),
        pytest.param(LeaseState(held=(lease("recovery", "server"),)), False, id="itself"),
        pytest.param(LeaseState(wanted=(lease("deploy", "server"),)), True, id="deploy wants it"),
        pytest.param(
            LeaseState(wanted=(lease("custom", "server", priority=9),)), False, id="custom wants it"
        ),
    ],
)
def test_pods_that_others_work_on_are_not_touched(state: LeaseState, busy: bool) -> None:
    asks = leased_to_others(state, priority=1)
    assert asks(DOWN) is busy
    assert decided(EMPTY, DOWN, busy=asks).revises is not busy


# --- replacements at a distance ------------------------------------------------------------------


def test_replacements_that_nobody_ordered_keep_their_distance() -> None:
    lost = [DOWN.but(index=index, permanent=True) for index in range(3)]
    all_of_them = decided(EMPTY, *lost)
    states = [phase.state.steps.get(0) for phase in all_of_them.put]
    assert [state and state.delayed_until for state in states] == [None, at(10), at(20)]
    assert states[1] is not None
    assert states[1].reason == "it FAILED; replacements are at least 10 s apart"
    ordered = decided(all_of_them.book, *lost, DOWN.but(index=3, permanent=True, ordered=True))
    assert ordered.put[0].state.steps == {}
    later = decided(all_of_them.book, *lost, DOWN.but(index=4, permanent=True), now=90)
    assert later.put[0].state.steps == {}


def test_a_replacement_keeps_its_turn_when_it_is_put_again() -> None:
    lost = [DOWN.but(index=index, permanent=True) for index in range(2)]
    first = decided(EMPTY, *lost)
    again = decided(first.book, lost[0], lost[1].but(config_id="c2"))
    assert again.put[0].state.steps[0].delayed_until == at(10)
    assert again.book.replaced == first.book.replaced


def test_a_turn_does_not_shorten_a_back_off() -> None:
    first = decided(EMPTY, DOWN.but(permanent=True))
    waits = DOWN.but(index=1, permanent=True, delayed_until=at(60))
    assert decided(first.book, waits).put[0].state.steps[0].delayed_until == at(60)


# --- recovery by developers ----------------------------------------------------------------------


def phase(name: str, *works: PodWork | SleepWork, strategy: str = "serial") -> PhaseSpec:
    steps = tuple(StepSpec(name=f"s{i}", work=work) for i, work in enumerate(works))
    return PhaseSpec.model_validate({"name": name, "strategy": strategy, "steps": steps})


OWN = PodWork(pod="hello", index=0, tasks=("server",))


def pause(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return [phase("custom-hello-recovery", SleepWork(duration=timedelta(0)), OWN, OWN)]


def leaves_it(failed: FailedPod, situation: RecoverySituation) -> None:
    return None


def raises(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    raise RuntimeError("no idea")


def nonsense(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return ["hello"]  # type: ignore[list-item]


def nothing(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return []


def no_order(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return [phase("a", OWN), phase("b", OWN).but(depends_on=("a",))]


def test_the_first_that_has_phases_is_taken() -> None:
    decision = decided(EMPTY, DOWN, recoverers=[leaves_it, pause, raises])
    assert (names(decision), decision.problems) == (["custom-hello-recovery"], ())


def test_the_first_step_on_the_pod_is_its_recovery() -> None:
    (put,) = decided(EMPTY, DOWN.but(permanent=True), recoverers=[pause]).put
    works = [step.work for step in put.spec.steps[1:]]
    assert [(w.recovery, w.config_id) for w in works if isinstance(w, PodWork)] == [
        ("permanent", "c1"),
        ("transient", "c1"),
    ]


def test_steps_that_say_what_they_are_are_left_alone() -> None:
    def says(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
        return [phase("own", OWN, failed.work("n1"))]

    (put,) = decided(EMPTY, DOWN, recoverers=[says]).put
    assert [step.work for step in put.spec.steps] == [OWN, DOWN.work("n1")]


@pytest.mark.parametrize(
    ("recoverer", "said"),
    [
        (raises, "RuntimeError: no idea"),
        (nonsense, "AttributeError"),
        (nothing, "no phases"),
        (no_order, "does not keep this dependency"),
    ],
)
def test_one_that_fails_is_told_and_the_default_taken(recoverer: Recoverer, said: str) -> None:
    decision = decided(EMPTY, DOWN, recoverers=[recoverer, pause])
    assert names(decision) == [SERVER]
    (problem,) = decision.problems
    assert said in problem
    assert "hello-0" in problem


def test_transient_by_default_then_permanent_by_a_developers_phase() -> None:
    """Reference 6.10: transientToCustomPermanentFailureTransition."""

    def permanently(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec] | None:
        return pause(failed, situation) if failed.permanent else None

    first = decided(EMPTY, DOWN, recoverers=[permanently])
    gone = DOWN.but(permanent=True, ordered=True)
    second = decided(first.book, gone, report=taken(first.book, SERVER), recoverers=[permanently])
    assert (names(first), names(second)) == ([SERVER], ["custom-hello-recovery"])
    assert second.drop == (SERVER,)


def test_phases_of_the_same_name_for_two_pods() -> None:
    both = decided(EMPTY, DOWN, DOWN.but(index=1), DOWN.but(index=2), recoverers=[pause])
    assert names(both) == [
        "custom-hello-recovery",
        "hello-1 custom-hello-recovery",
        "hello-2 custom-hello-recovery",
    ]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [("serial", [True, False]), ("canary", [True, False]), ("parallel", [True, True])],
)
def test_what_would_be_first_waits_for_the_back_off(strategy: str, expected: list[bool]) -> None:
    def two(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
        return [phase("own", OWN, OWN, strategy=strategy)]

    (put,) = decided(EMPTY, DOWN.but(delayed_until=at(9)), recoverers=[two]).put
    states = [put.state.steps.get(index) for index in range(2)]
    assert [bool(state and state.delayed_until) for state in states] == expected


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
        self.book = self.book.afresh("hello", index)
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
            promised=book.promised(self.report),
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
TestLife.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
