"""What is under way, and how the recovery plan is revised (behaviour 6.1, 6.4, 6.10)."""

import pytest

from builders.clock import NOW, at, seconds
from builders.plans import plan_spec
from builders.tasks import by_name, record
from temporal_plans.domain.plans.board import PhaseBoard, PlanBoard
from temporal_plans.domain.plans.leases import LeaseState
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import delay_left, due
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.book import (
    RecoveryBook,
    RecoveryReport,
    leased_to_others,
    recovery_phase,
)
from temporal_plans.domain.services.recovery.failed import FailedPod
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.names import MAX_NAME
from unit.domain.services.recovery_decisions import (
    DOWN,
    EMPTY,
    RECORDS,
    SERVER,
    decided,
    lease,
    names,
    taken,
)

# --- the default phase ---------------------------------------------------------------------------


def test_one_phase_of_one_step_of_the_same_name() -> None:
    spec, state = recovery_phase(DOWN)
    (step,) = spec.steps
    assert (spec.name, step.name, spec.strategy.name) == (SERVER, SERVER, "parallel")
    assert step.work == DOWN.work()
    assert PhaseBoard(spec, state).status is Status.PENDING
    assert not problems(plan_spec(spec, name="recovery"))


def test_it_is_delayed_and_waits_that_out() -> None:
    pod_down = DOWN.but(delayed_until=at(9), delays={"hello-0-server": seconds(8)})
    spec, state = recovery_phase(pod_down)
    board = PlanBoard(plan_spec(spec, name="recovery"))
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
    assert not problems(plan_spec(*specs, name="recovery"))


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
    assert RecoveryBook().is_cancelled(step)
    assert not RecoveryBook().is_cancelled(step.replace("recovery", "deploy"))
    assert not RecoveryBook().is_cancelled("")
    wanted = decided(RecoveryBook(), DOWN).book
    assert not wanted.is_cancelled(step)
    running = RECORDS | by_name(record("hello", 0, "server", TaskState.RUNNING))
    report = taken(wanted, "hello-0:[server]")
    assert decided(wanted, report=report, records=running).book.is_cancelled(step)


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
    asked = first.book.restarted("hello", 0)
    assert not decided(asked, report=report, records=launched_anew()).revises
    again = decided(asked, DOWN, report=report, records=launched_anew())
    assert names(again) == [SERVER]
    assert not any(one.restart for one in again.book.recoveries)
    assert first.book.restarted("hello", 1) == first.book


def test_a_plan_that_was_lost_is_filled_again() -> None:
    first = decided(EMPTY, DOWN)
    again = decided(first.book.cleared(), DOWN, report=taken(first.book))
    assert (names(again), again.book.revision) == ([SERVER], 2)


def test_configurations_that_are_still_needed() -> None:
    first = decided(EMPTY, DOWN)
    assert first.book.pending_configs(RecoveryReport()) == {("hello", 0): "c1"}
    assert first.book.pending_configs(taken(first.book)) == {}


def test_the_book_does_not_grow_for_ever() -> None:
    book = EMPTY
    for index in range(300):
        book = decided(book, DOWN.but(index=index), report=taken(book)).book
    assert (len(book.recoveries), book.revision) == (101, 300)


# --- others at work ------------------------------------------------------------------------------


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
