"""One-off strategies of a deployment: canary and max-unavailable."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from builders.clock import NOW
from builders.plans import phase_spec, plan_spec, step_spec
from builders.step_states import AT_WORK, COMPLETE
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.owners.rollout import PhaseRollout, Rollout, rolled_out
from temporal_plans.domain.owners.rollout import Rollout as MessagesRollout
from temporal_plans.domain.plans.board import PhaseBoard, PhaseState
from temporal_plans.domain.plans.commands import Order, OrderVerb, apply_order
from temporal_plans.domain.plans.plan import PhaseSpec, StepSpec
from temporal_plans.domain.plans.plan_check import problems
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.domain.values.refusal import SpecError


def steps(*names: str) -> tuple[StepSpec, ...]:
    """``0a`` is task a of instance 0; ``-x`` a step that sleeps."""
    return tuple(
        step_spec(name, SleepWork(duration=timedelta(1)))
        if name.startswith("-")
        else step_spec(name, PodWork(pod="web", index=int(name[0]), tasks=(name[1:],)))
        for name in names
    )


PODS = steps(*(f"{i}a" for i in range(5)))
TWICE = steps("0a", "0b", "1a", "1b", "2a", "2b")


def web(strategy: StrategySpec | str, made: Sequence[StepSpec] = PODS) -> PhaseSpec:
    return phase_spec("web", *made, strategy=strategy)


def one(made: PhaseSpec, **rollout: int) -> PhaseSpec:
    (result,) = rolled_out(plan_spec(made), Rollout.model_validate(rollout)).phases
    return result


def bounded(limit: int, **fields: int) -> StrategySpec:
    name = "max-parallel-canary" if "proceeds" in fields else "max-parallel"
    return StrategySpec(name=name, limit=limit).but(**fields)


def canary(name: str, proceeds: int) -> StrategySpec:
    return StrategySpec(name=f"{name}-canary", proceeds=proceeds)


WAVES = StrategySpec(name="waves", waves=(1, "80%"))


@pytest.mark.parametrize(
    ("strategy", "rollout", "expected"),
    [
        pytest.param("serial", {}, "serial", id="nothing"),
        pytest.param("serial", {"canary": 3}, canary("serial", 3), id="serial-canary"),
        pytest.param("canary", {"canary": 3}, canary("serial", 3), id="already-canary"),
        pytest.param("parallel", {"canary": 1}, canary("parallel", 1), id="parallel-canary"),
        pytest.param(canary("parallel", 2), {"canary": 1}, canary("parallel", 1), id="fewer-gates"),
        pytest.param("dependency", {"canary": 2}, canary("dependency", 2), id="dependency-canary"),
        pytest.param(bounded(4), {"canary": 2}, bounded(4, proceeds=2), id="bounded-canary"),
        pytest.param("serial", {"max_unavailable": 3}, bounded(3), id="serial-bounded"),
        pytest.param("parallel", {"max_unavailable": 3}, bounded(3), id="parallel-bounded"),
        pytest.param(bounded(5), {"max_unavailable": 3}, bounded(3), id="other-bound"),
        pytest.param(
            canary("parallel", 2), {"max_unavailable": 3}, bounded(3, proceeds=2), id="own-canary"
        ),
        pytest.param("random", {"max_unavailable": 3}, "random", id="random-is-one-at-a-time"),
        pytest.param(
            WAVES,
            {"max_unavailable": 3},
            StrategySpec(name="waves", waves=(1, 3, 1)),
            id="waves-in-portions",
        ),
        pytest.param(
            "serial", {"canary": 2, "max_unavailable": 3}, bounded(3, proceeds=2), id="both"
        ),
    ],
)
def test_strategies(
    strategy: StrategySpec | str, rollout: dict[str, int], expected: StrategySpec | str
) -> None:
    made = web(strategy)
    result = one(made, **rollout)
    assert result.strategy == web(expected).strategy
    assert [step.name for step in result.steps] == [step.name for step in made.steps]
    assert problems(plan_spec(result)) == ()


@pytest.mark.parametrize(
    ("made", "rollout"),
    [
        pytest.param(web("by-rack"), {"max_unavailable": 1}, id="own-strategy-bounded"),
        pytest.param(web("by-rack"), {"canary": 1}, id="own-strategy-canary"),
        pytest.param(web("random"), {"canary": 1}, id="random-canary"),
        pytest.param(web(WAVES), {"canary": 1}, id="waves-canary"),
    ],
)
def test_refused(made: PhaseSpec, rollout: dict[str, int]) -> None:
    other = made.but(name="other")
    with pytest.raises(SpecError) as error:
        rolled_out(plan_spec(made, other), Rollout.model_validate(rollout))
    assert [problem.field for problem in error.value.reasons] == [
        "phases.web.strategy",
        "phases.other.strategy",
    ]
    assert all(p.fix and p.value == made.strategy.name for p in error.value.reasons)


def test_phases_without_pods_and_those_without_steps_stay() -> None:
    made = plan_spec(web("by-rack", steps("-x")), phase_spec("empty"))
    assert rolled_out(made, Rollout(canary=1, max_unavailable=1)) is made


def test_no_pod_at_all_is_no_rollout() -> None:
    with pytest.raises(ValidationError):
        Rollout(canary=0)
    assert MessagesRollout is Rollout


# --- on a board -----------------------------------------------------------------------------------


def candidates(board: PhaseBoard) -> list[str]:
    return [board.spec.steps[i].name for i in board.candidates()]


def put(board: PhaseBoard, state: StepState, *names: str) -> None:
    for i, step in enumerate(board.spec.steps):
        if step.name in names:
            board.set(i, state)


def go(board: PhaseBoard) -> list[str]:
    apply_order(board, Order(phase=0, verb=OrderVerb.PROCEED), NOW)
    return candidates(board)


def test_the_steps_of_one_instance_stay_in_order() -> None:
    board = PhaseBoard(one(web("serial", TWICE), max_unavailable=2))
    assert candidates(board) == ["0a", "1a"]
    put(board, AT_WORK, "0a", "1a")
    put(board, COMPLETE, "1a")
    assert candidates(board) == ["0a", "1b"]  # a pod that was begun goes on before a new one
    put(board, AT_WORK, "1b")
    put(board, COMPLETE, "1b")
    assert candidates(board) == ["0a", "2a"]


def test_what_is_no_pod_keeps_its_place_in_a_serial_phase() -> None:
    made = web("serial", steps("0a", "1a", "-migrate", "2a", "3a", "-check"))
    board = PhaseBoard(one(made, max_unavailable=5))
    assert candidates(board) == ["0a", "1a"]
    put(board, COMPLETE, "0a", "1a")
    assert candidates(board) == ["-migrate"]
    put(board, COMPLETE, "-migrate")
    assert candidates(board) == ["2a", "3a"]
    put(board, COMPLETE, "2a", "3a")
    assert candidates(board) == ["-check"]


def test_an_order_that_was_written_is_kept() -> None:
    after = step_spec("first", PodWork(pod="web", index=9, tasks=("a",)))
    made = web("dependency", (PODS[0].but(depends_on=("first",)), after))
    result = one(made, max_unavailable=2)
    assert result.steps == made.steps
    assert candidates(PhaseBoard(result)) == ["first"]


def test_gates_are_before_the_first_that_are_not_complete() -> None:
    made = one(web("parallel"), canary=2)
    board = PhaseBoard(made, PhaseState(steps={0: COMPLETE, 2: COMPLETE}))
    assert candidates(board) == []
    assert go(board) == ["1a"]
    put(board, COMPLETE, "1a")
    assert candidates(board) == []
    assert go(board) == ["3a", "4a"]  # the last continue lets the rest follow


def test_the_bound_holds_for_the_pods_that_were_continued() -> None:
    board = PhaseBoard(one(web("parallel"), canary=3, max_unavailable=1))
    assert go(board) == ["0a"]
    put(board, AT_WORK, "0a")
    assert go(board) == ["0a"]
    put(board, COMPLETE, "0a")
    assert candidates(board) == ["1a"]
    put(board, COMPLETE, "1a")
    assert candidates(board) == []
    assert go(board) == ["2a"]


def test_what_goes_on_from_before_counts() -> None:
    """A step that the plan takes up at work is no gate, and yet unavailable."""
    made = one(web("parallel"), canary=2, max_unavailable=1)
    board = PhaseBoard(made, PhaseState(steps={4: AT_WORK}))
    assert go(board) == []
    put(board, COMPLETE, "4a")
    assert candidates(board) == ["0a"]


def chained(made: Sequence[StepSpec]) -> tuple[StepSpec, ...]:
    """The steps of each instance, each after those before it (``parallel`` of a service file)."""
    return tuple(
        step.but(depends_on=tuple(one.name for one in made[:i] if one.name[0] == step.name[0]))
        for i, step in enumerate(made)
    )


SEVERAL = [
    pytest.param(web("serial", TWICE), {}, id="serial"),
    pytest.param(web("dependency", chained(TWICE)), {}, id="parallel"),
    pytest.param(web("serial", TWICE), {"max_unavailable": 1}, id="bounded"),
    pytest.param(web("serial", TWICE), {"max_unavailable": 2}, id="bounded-to-two"),
]


@pytest.mark.parametrize(("made", "rollout"), SEVERAL)
def test_all_steps_of_a_pod_follow_its_continue(made: PhaseSpec, rollout: dict[str, int]) -> None:
    """A pod of several steps has one gate, and no other pod begins before the last gate is open."""
    board = PhaseBoard(one(made, canary=2, **rollout))
    assert [board.spec.steps[i].name for i in board.canary] == ["0a", "1a"]
    assert (candidates(board), board.is_interrupted) == ([], True)
    assert go(board) == ["0a"]
    put(board, COMPLETE, "0a")
    assert (candidates(board), board.is_interrupted) == (["0b"], False)
    put(board, AT_WORK, "0b")
    assert candidates(board) == ["0b"]
    put(board, COMPLETE, "0b")
    assert (candidates(board), board.is_interrupted) == ([], True)
    assert "1a" in go(board)
    put(board, COMPLETE, "1a")
    assert candidates(board)[0] == "1b"
    put(board, COMPLETE, "1b")
    assert candidates(board)[0] == "2a"


def test_two_open_gates_let_the_steps_of_two_pods_run_side_by_side() -> None:
    board = PhaseBoard(one(web("serial", TWICE), canary=3))
    go(board)
    assert go(board) == ["0a", "1a"]
    put(board, COMPLETE, "1a")
    assert candidates(board) == ["0a", "1b"]


def test_a_pod_half_way_has_its_gate_before_its_next_step() -> None:
    made = one(web("serial", TWICE), canary=1)
    board = PhaseBoard(made, PhaseState(steps={0: COMPLETE}))
    assert [board.spec.steps[i].name for i in board.canary] == ["0b"]
    moving = PhaseBoard(made, PhaseState(steps={0: AT_WORK}))
    assert [moving.spec.steps[i].name for i in moving.canary] == ["1a"]


def test_the_gate_of_a_pod_survives_a_new_run_of_the_phase() -> None:
    board = PhaseBoard(one(web("serial", TWICE), canary=2))
    go(board)
    put(board, COMPLETE, "0a")
    assert candidates(PhaseBoard(board.spec, board.state)) == ["0b"]


def test_phases_have_their_own_numbers() -> None:
    plan = plan_spec(web("serial"), web("serial").but(name="db"), web("by-rack").but(name="own"))
    rollout = Rollout(phases={"web": PhaseRollout(canary=1), "db": PhaseRollout(max_unavailable=2)})
    assert [phase.strategy for phase in rolled_out(plan, rollout).phases] == [
        canary("serial", 1),
        bounded(2),
        StrategySpec(name="by-rack"),
    ]


def test_a_number_of_a_phase_is_before_that_of_all() -> None:
    rollout = Rollout(canary=2, max_unavailable=5, phases={"web": PhaseRollout(canary=1)})
    assert rollout.of("web") == PhaseRollout(canary=1, max_unavailable=5)
    assert rollout.of("db") == PhaseRollout(canary=2, max_unavailable=5)


@pytest.mark.parametrize(
    ("name", "problem"),
    [("wbe", "the plan has no such phase"), ("sleeps", "this phase launches no pods")],
)
def test_a_phase_that_can_not_be_rolled_out_is_refused(name: str, problem: str) -> None:
    plan = plan_spec(web("serial"), web("serial", steps("-x")).but(name="sleeps"))
    with pytest.raises(SpecError) as error:
        rolled_out(plan, Rollout(phases={name: PhaseRollout(canary=1)}))
    (reason,) = error.value.reasons
    assert (reason.field, reason.problem) == (f"rollout.phases.{name}", problem)
    assert "web" in reason.fix


@given(
    strategy=st.sampled_from(["serial", "parallel", "canary", "parallel-canary"]),
    limit=st.integers(1, 4),
    gates=st.none() | st.integers(1, 4),
    moves=st.lists(st.integers(0, 20), max_size=40),
)
def test_never_more_than_the_bound_at_once(
    strategy: str, limit: int, gates: int | None, moves: list[int]
) -> None:
    rollout = Rollout(max_unavailable=limit, canary=gates)
    board = PhaseBoard(rolled_out(plan_spec(web(strategy)), rollout).phases[0])
    for move in moves:
        at_work = [i for i, step in enumerate(board.steps) if step.begun]
        fresh = [i for i in board.candidates() if i not in at_work]
        if move % 3 == 0:
            go(board)
        elif move % 3 == 1 and fresh:
            board.set(fresh[move % len(fresh)], AT_WORK)
        elif move % 3 == 2 and at_work:
            board.set(at_work[move % len(at_work)], COMPLETE)
        assert sum(step.begun for step in board.steps) <= limit
