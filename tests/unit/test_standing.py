"""Standing plans as values: phases that come and go, errors of the plan itself, what is over."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from temporal_plans.domain import standing
from temporal_plans.domain.board import PhaseBoard, PhaseState, PlanBoard
from temporal_plans.domain.commands import Verb
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.explain import Cause, explain
from temporal_plans.domain.plan import (
    ApprovalWork,
    DeregisterWork,
    EraseWork,
    KillWork,
    PhaseSpec,
    PlanSpec,
    StepSpec,
    StrategySpec,
    UnreserveWork,
    Work,
)
from temporal_plans.domain.plan_check import phase_problems, problems
from temporal_plans.domain.status import Status
from temporal_plans.domain.transitions import (
    StepState,
    completed,
    forced,
    releasing,
    restarted,
    working,
)
from unit.board_kit import tell

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REMOVALS: list[Work] = [
    KillWork(task="web-0-server"),
    UnreserveWork(resource="r1", key="service/web:web-0"),
    EraseWork(task="web-0-server"),
    DeregisterWork(),
]


def phase(name: str, work: Work | None = None) -> PhaseSpec:
    return PhaseSpec(name=name, steps=(StepSpec(name="s", work=work or ApprovalWork()),))


def plan(*phases: PhaseSpec, standing: bool = True, faults: tuple[str, ...] = ()) -> PlanBoard:
    spec = PlanSpec(name="recovery", strategy=StrategySpec(name="parallel"), phases=phases)
    return PlanBoard(spec, standing=standing, faults=faults)


def ended(ago: timedelta) -> PhaseBoard:
    return PhaseBoard(phase("p"), PhaseState(steps={0: completed(StepState(), NOW - ago)}))


# --- phases come and go ---------------------------------------------------------------------------


def test_a_phase_of_the_same_name_takes_the_place_under_a_new_number() -> None:
    board = plan(phase("a"), phase("b"))
    state = PhaseState(steps={0: StepState(status=Status.DELAYED, delayed_until=NOW)})
    board.put(phase("a"), state)
    assert [one.spec.name for one in board.phases] == ["a", "b"]
    assert board.numbers == [2, 1]
    assert board.phases[0].steps[0].status is Status.DELAYED
    assert board.phases[0].delayed == {0}
    assert [one.name for one in board.spec.phases] == ["a", "b"]


_MOVES = st.lists(st.tuples(st.sampled_from(["put", "drop"]), st.sampled_from("abcd")), max_size=20)


@given(_MOVES)
def test_numbers_are_never_given_again(moves: list[tuple[str, str]]) -> None:
    """Whatever comes and goes, a number means one phase, and the spec is what is there."""
    board = plan(phase("a"), phase("b"))
    meant = dict(zip(board.numbers, board.phases, strict=True))
    for move, name in moves:
        index = board.named(name)
        if move == "put":
            board.put(phase(name), PhaseState())
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
        phases=tuple(phase(name) for name in "abc"),
    )
    board = PlanBoard(spec, standing=True)
    gates = board.canary
    board.drop(0)
    assert (gates, board.canary, board.closed_gate) == ((0, 1), (0,), 0)


def test_an_interrupt_of_a_complete_standing_plan_holds() -> None:
    board = plan()
    assert board.complete
    assert [tell(board, Verb.INTERRUPT).code, tell(board, Verb.INTERRUPT).code] == [200, 208]
    assert board.waits() == ("the plan is interrupted",)
    assert "wait for continue" in explain(board, None, None).explanations[0].text
    board.put(phase("a"), PhaseState())
    assert (board.status, board.candidates()) == (Status.WAITING, [])
    board.drop(0)
    assert [tell(board, Verb.CONTINUE).code, tell(board, Verb.CONTINUE).code] == [200, 208]
    board.put(phase("a"), PhaseState())
    assert board.candidates() == [0]


def test_start_repeats_nothing_that_a_standing_plan_has_done() -> None:
    board = plan(phase("a"))
    assert tell(board, Verb.FORCE_COMPLETE).code == 200
    assert tell(board, Verb.START).code == 200
    assert board.complete
    assert tell(board, Verb.RESTART, "a").code == 200
    assert not board.complete


def test_what_was_forced_is_listed() -> None:
    board = plan(phase("a"), phase("b"))
    board.phases[1].set(0, forced(StepState(), NOW))
    assert board.forced == ("b/s",)


# --- what is over ---------------------------------------------------------------------------------


def test_what_is_over_goes_in_time_and_when_there_is_too_much() -> None:
    minute = timedelta(minutes=1)
    old, young, open_one = ended(10 * minute), ended(9 * minute), PhaseBoard(phase("p"))
    assert standing.over([open_one, old, young], NOW) == [1]
    assert standing.next_over([open_one, young]) == NOW + minute
    assert standing.next_over([open_one]) is None
    many = [ended(timedelta(seconds=i)) for i in range(standing.KEPT + 2)]
    assert standing.over(many, NOW) == [standing.KEPT, standing.KEPT + 1]


def test_a_phase_that_had_nothing_to_do_is_over_at_once() -> None:
    assert standing.over([PhaseBoard(PhaseSpec(name="empty"))], NOW) == [0]


def test_a_refused_phase_reads_error_with_the_reasons() -> None:
    spec = standing.refused(phase("a"), [Problem(path="phases.a", message="is wrong")])
    board = plan()
    board.put(spec, PhaseState())
    assert (board.status, board.errors) == (Status.ERROR, ("a: s: phases.a: is wrong",))
    assert board.candidates() == []


# --- errors of the plan itself --------------------------------------------------------------------


def test_faults_read_error_and_hold_nothing_up() -> None:
    board = plan(phase("a"), standing=False, faults=("count: too low",))
    assert (board.status, board.errors) == (Status.ERROR, ("count: too low",))
    assert board.candidates() == [0]
    first, *rest = explain(board, None, None).explanations
    assert (first.cause, first.text) == (Cause.ERROR, "count: too low")
    assert rest, "and what the phases wait for"
    assert tell(board, Verb.INTERRUPT).code == 200
    assert tell(board, Verb.CONTINUE).code == 200
    assert not board.interrupted
    board.phases[0].set(0, completed(StepState(), NOW))
    assert not board.complete
    assert tell(board, Verb.FORCE_COMPLETE).code == 200
    assert board.complete


def test_restart_does_not_clear_faults() -> None:
    board = plan(phase("a"), standing=False, faults=("refused",))
    assert tell(board, Verb.RESTART).code == 200
    assert board.faults == ("refused",)


# --- steps that take a service away ---------------------------------------------------------------


@pytest.mark.parametrize("work", [pytest.param(work, id=work.kind) for work in REMOVALS])
def test_only_plans_of_a_service_take_it_away(work: Work) -> None:
    spec = PlanSpec(name="p", phases=(phase("a", work),))
    assert problems(spec) == ()
    (found,) = problems(spec, of_service=False)
    assert found.path == f"phases.a.steps.s.{work.kind}"
    assert "of no service" in found.message


def test_only_a_standing_plan_needs_no_phases() -> None:
    spec = PlanSpec(name="p")
    assert [problem.path for problem in problems(spec)] == ["phases"]
    assert problems(spec, standing=True) == ()


def test_a_phase_is_judged_by_itself() -> None:
    assert phase_problems(phase("a")) == ()
    assert [problem.path for problem in phase_problems(phase("a/b"))] == ["phases.a/b"]


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
    board = plan(phase("a", work), standing=False)
    state = begin(StepState(), NOW)
    board.phases[0].set(0, state)
    assert (board.phases[0].steps[0].shown, board.status) == (status, Status.IN_PROGRESS)
    assert board.phases[0].candidates() == [0]
    assert explain(board, 0, 0).explanations[0].cause is Cause.RUNNING
    board.phases[0].set(0, state.but(reason="agent a3 is LOST: bring it back"))
    (answer,) = explain(board, 0, 0).explanations
    assert (answer.cause, answer.text) == (
        Cause.AGENT,
        "step s waits: agent a3 is LOST: bring it back",
    )
    assert restarted(state) == StepState()
    assert begin(completed(state, NOW), NOW).complete
