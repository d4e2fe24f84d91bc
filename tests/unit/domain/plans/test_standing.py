"""Standing plans as values: phases that come and go, errors of the plan itself, what is over."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.boards import tell
from builders.clock import NOW
from builders.plans import phase_spec, plan_spec, step_spec
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.deregister import DeregisterWork
from temporal_plans.domain.kinds.erase import EraseWork
from temporal_plans.domain.kinds.kill import KillWork
from temporal_plans.domain.kinds.unreserve import UnreserveWork
from temporal_plans.domain.kinds.work import Work
from temporal_plans.domain.plans import standing
from temporal_plans.domain.plans.board import PhaseBoard, PhaseState, PlanBoard
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.explain import explain
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec
from temporal_plans.domain.plans.plan_check import phase_problems, problems
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import (
    StepState,
    completed,
    forced,
    releasing,
    restarted,
    with_reason,
    working,
)
from temporal_plans.domain.values.refusal import Reason

REMOVALS: list[Work] = [
    KillWork(task="web-0-server"),
    UnreserveWork(resource="r1", key="service/web:web-0"),
    EraseWork(task="web-0-server"),
    DeregisterWork(),
]


def asking(name: str, work: Work | None = None) -> PhaseSpec:
    """A phase of one step, which waits for approval when no other work is given."""
    return phase_spec(name, step_spec("s", work or ApprovalWork()))


def recovery(*phases: PhaseSpec, standing: bool = True, faults: tuple[str, ...] = ()) -> PlanBoard:
    spec = plan_spec(*phases, name="recovery", strategy="parallel")
    return PlanBoard(spec, standing=standing, faults=faults)


def ended(ago: timedelta) -> PhaseBoard:
    return PhaseBoard(asking("p"), PhaseState(steps={0: completed(StepState(), NOW - ago)}))


# --- phases come and go ---------------------------------------------------------------------------


def test_a_phase_of_the_same_name_takes_the_place_under_a_new_number() -> None:
    board = recovery(asking("a"), asking("b"))
    state = PhaseState(steps={0: StepState(status=Status.DELAYED, delayed_until=NOW)})
    board.put(asking("a"), state)
    assert [one.spec.name for one in board.phases] == ["a", "b"]
    assert board.numbers == [2, 1]
    assert board.phases[0].steps[0].status is Status.DELAYED
    assert board.phases[0].delayed == {0}
    assert [one.name for one in board.spec.phases] == ["a", "b"]


_MOVES = st.lists(st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from("abcd")), max_size=20)


@given(_MOVES)
def test_numbers_are_never_given_again(moves: list[tuple[str, str]]) -> None:
    """Whatever comes and goes, a number means one phase, and the spec is what is there."""
    board = recovery(asking("a"), asking("b"))
    meant = dict(zip(board.numbers, board.phases, strict=True))
    for move, name in moves:
        index = board.named(name)
        if move == "put":
            board.put(asking(name), PhaseState())
        elif index is not None:
            board.drop(index)
        for number, one in zip(board.numbers, board.phases, strict=True):
            assert meant.setdefault(number, one) is one
            assert board.of_number(number) is one
        assert [one.spec for one in board.phases] == list(board.spec.phases)
        names = [one.spec.name for one in board.phases]
        assert len(set(names)) == len(names)
        assert board.status in (Status.COMPLETE, Status.PENDING)


def test_gates_of_a_plan_move_up_with_their_phases() -> None:
    spec = PlanSpec(
        name="p",
        strategy=StrategySpec(name="parallel-canary"),
        phases=tuple(asking(name) for name in "abc"),
    )
    board = PlanBoard(spec, standing=True)
    gates = board.canary
    board.drop(0)
    assert (gates, board.canary, board.closed_gate) == ((0, 1), (0,), 0)


def test_an_interrupt_of_a_complete_standing_plan_holds() -> None:
    board = recovery()
    assert board.complete
    assert [http_code(tell(board, Verb.INTERRUPT)), http_code(tell(board, Verb.INTERRUPT))] == [
        200,
        208,
    ]
    assert board.waits() == ("the plan is interrupted",)
    assert "wait for continue" in explain(board, None, None).explanations[0].text
    board.put(asking("a"), PhaseState())
    assert (board.status, board.candidates()) == (Status.WAITING, [])
    board.drop(0)
    assert [http_code(tell(board, Verb.CONTINUE)), http_code(tell(board, Verb.CONTINUE))] == [
        200,
        208,
    ]
    board.put(asking("a"), PhaseState())
    assert board.candidates() == [0]


def test_start_repeats_nothing_that_a_standing_plan_has_done() -> None:
    board = recovery(asking("a"))
    assert http_code(tell(board, Verb.FORCE_COMPLETE)) == 200
    assert http_code(tell(board, Verb.START)) == 200
    assert board.complete
    assert http_code(tell(board, Verb.RESTART, "a")) == 200
    assert not board.complete


def test_what_was_forced_is_listed() -> None:
    board = recovery(asking("a"), asking("b"))
    board.phases[1].set(0, forced(StepState(), NOW))
    assert board.forced == ("b/s",)


# --- what is over ---------------------------------------------------------------------------------


def test_what_is_over_goes_in_time_and_when_there_is_too_much() -> None:
    minute = timedelta(minutes=1)
    old, young, open_one = ended(10 * minute), ended(9 * minute), PhaseBoard(asking("p"))
    assert standing.expired([open_one, old, young], NOW) == [1]
    assert standing.next_expiry([open_one, young]) == NOW + minute
    assert standing.next_expiry([open_one]) is None
    many = [ended(timedelta(seconds=i)) for i in range(standing.RETENTION_LIMIT + 2)]
    assert standing.expired(many, NOW) == [standing.RETENTION_LIMIT, standing.RETENTION_LIMIT + 1]


def test_a_phase_that_had_nothing_to_do_is_over_at_once() -> None:
    assert standing.expired([PhaseBoard(phase_spec("empty"))], NOW) == [0]


def test_a_refused_phase_reads_error_with_the_reasons() -> None:
    spec = standing.with_errors(asking("a"), [Reason(field="phases.a", problem="is wrong")])
    board = recovery()
    board.put(spec, PhaseState())
    assert (board.status, board.errors) == (Status.ERROR, ("a: s: phases.a: is wrong",))
    assert board.candidates() == []


# --- errors of the plan itself --------------------------------------------------------------------


def test_faults_read_error_and_hold_nothing_up() -> None:
    board = recovery(asking("a"), standing=False, faults=("count: too low",))
    assert (board.status, board.errors) == (Status.ERROR, ("count: too low",))
    assert board.candidates() == [0]
    first, *rest = explain(board, None, None).explanations
    assert (first.cause, first.text) == (Cause.ERROR, "count: too low")
    assert rest, "and what the phases wait for"
    assert http_code(tell(board, Verb.INTERRUPT)) == 200
    assert http_code(tell(board, Verb.CONTINUE)) == 200
    assert not board.interrupted
    board.phases[0].set(0, completed(StepState(), NOW))
    assert not board.complete
    assert http_code(tell(board, Verb.FORCE_COMPLETE)) == 200
    assert board.complete


def test_restart_does_not_clear_faults() -> None:
    board = recovery(asking("a"), standing=False, faults=("refused",))
    assert http_code(tell(board, Verb.RESTART)) == 200
    assert board.faults == ("refused",)


# --- steps that take a service away ---------------------------------------------------------------


@pytest.mark.parametrize("work", [pytest.param(work, id=work.kind) for work in REMOVALS])
def test_only_plans_of_a_service_take_it_away(work: Work) -> None:
    spec = plan_spec(asking("a", work), name="p")
    assert problems(spec) == ()
    (found,) = problems(spec, of_service=False)
    assert found.field == f"phases.a.steps.s.{work.kind}"
    assert "belongs to no service" in found.problem


def test_only_a_standing_plan_needs_no_phases() -> None:
    spec = plan_spec(name="p")
    assert [problem.field for problem in problems(spec)] == ["phases"]
    assert problems(spec, may_be_empty=True) == ()


def test_a_phase_is_judged_by_itself() -> None:
    assert phase_problems(asking("a")) == ()
    assert [problem.field for problem in phase_problems(asking("a/b"))] == ["phases.a/b"]


@pytest.mark.parametrize(
    ("begin", "status", "work"),
    [
        pytest.param(working, Status.IN_PROGRESS, REMOVALS[0], id="kill"),
        pytest.param(releasing, Status.PREPARED, REMOVALS[1], id="unreserve"),
    ],
)
def test_what_they_read_and_what_they_wait_for(
    begin: Callable[[StepState, datetime], StepState], status: Status, work: Work
) -> None:
    board = recovery(asking("a", work), standing=False)
    state = begin(StepState(), NOW)
    board.phases[0].set(0, state)
    assert (board.phases[0].steps[0].shown, board.status) == (status, Status.IN_PROGRESS)
    assert board.phases[0].candidates() == [0]
    assert explain(board, 0, 0).explanations[0].cause is Cause.RUNNING
    board.phases[0].set(0, with_reason(state, "agent a3 is LOST: bring it back", Cause.AGENT))
    (answer,) = explain(board, 0, 0).explanations
    assert (answer.cause, answer.text) == (
        Cause.AGENT,
        "step s waits: agent a3 is LOST: bring it back",
    )
    assert restarted(state) == StepState()
    assert begin(completed(state, NOW), NOW).complete
