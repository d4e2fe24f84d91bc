"""One-off strategies of a deployment: canary and max-unavailable."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from temporal_plans.domain.board import PhaseBoard, PhaseState
from temporal_plans.domain.commands import Order, OrderVerb, apply_order
from temporal_plans.domain.errors import SpecError
from temporal_plans.domain.plan import (
    PhaseSpec,
    PlanSpec,
    PodWork,
    SleepWork,
    StepSpec,
    StrategySpec,
)
from temporal_plans.domain.plan_check import problems
from temporal_plans.domain.rollout import Rollout, rolled_out
from temporal_plans.domain.transitions import StepState, begun, completed
from temporal_plans.messages.service import Rollout as MessagesRollout

NOW = datetime(2026, 1, 1, tzinfo=UTC)
COMPLETE = completed(StepState(), NOW)
AT_WORK = begun(StepState(), NOW)


def steps(*names: str) -> tuple[StepSpec, ...]:
    """``0a`` is task a of instance 0; ``-x`` a step that sleeps."""
    return tuple(
        StepSpec(name=name, work=SleepWork(duration=timedelta(1)))
        if name.startswith("-")
        else StepSpec(name=name, work=PodWork(pod="web", index=int(name[0]), tasks=(name[1:],)))
        for name in names
    )


PODS = steps(*(f"{i}a" for i in range(5)))
TWICE = steps("0a", "0b", "1a", "1b", "2a", "2b")


def phase(
    strategy: StrategySpec | str, made: Sequence[StepSpec] = PODS, name: str = "web"
) -> PhaseSpec:
    spec = StrategySpec(name=strategy) if isinstance(strategy, str) else strategy
    return PhaseSpec(name=name, strategy=spec, steps=tuple(made))


def plan(*phases: PhaseSpec) -> PlanSpec:
    return PlanSpec(name="deploy", phases=phases)


def one(made: PhaseSpec, **rollout: int) -> PhaseSpec:
    (result,) = rolled_out(plan(made), Rollout(**rollout)).phases
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
    made = phase(strategy)
    result = one(made, **rollout)
    assert result.strategy == phase(expected).strategy
    assert [step.name for step in result.steps] == [step.name for step in made.steps]
    assert problems(plan(result)) == ()


@pytest.mark.parametrize(
    ("made", "rollout"),
    [
        pytest.param(phase("by-rack"), {"max_unavailable": 1}, id="own-strategy-bounded"),
        pytest.param(phase("by-rack"), {"canary": 1}, id="own-strategy-canary"),
        pytest.param(phase("random"), {"canary": 1}, id="random-canary"),
        pytest.param(phase(WAVES), {"canary": 1}, id="waves-canary"),
        pytest.param(phase("serial", TWICE), {"canary": 1}, id="several-steps-of-a-pod"),
    ],
)
def test_refused(made: PhaseSpec, rollout: dict[str, int]) -> None:
    other = made.but(name="other")
    with pytest.raises(SpecError) as error:
        rolled_out(plan(made, other), Rollout(**rollout))
    assert [problem.path for problem in error.value.problems] == [
        "phases.web.strategy",
        "phases.other.strategy",
    ]
    assert all(p.fix and p.value == made.strategy.name for p in error.value.problems)


def test_phases_without_pods_and_those_without_steps_stay() -> None:
    made = plan(phase("by-rack", steps("-x")), phase("serial", (), "empty"))
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
    board = PhaseBoard(one(phase("serial", TWICE), max_unavailable=2))
    assert candidates(board) == ["0a", "1a"]
    put(board, AT_WORK, "0a", "1a")
    put(board, COMPLETE, "1a")
    assert candidates(board) == ["0a", "1b"]  # a pod that was begun goes on before a new one
    put(board, AT_WORK, "1b")
    put(board, COMPLETE, "1b")
    assert candidates(board) == ["0a", "2a"]


def test_what_is_no_pod_keeps_its_place_in_a_serial_phase() -> None:
    made = phase("serial", steps("0a", "1a", "-migrate", "2a", "3a", "-check"))
    board = PhaseBoard(one(made, max_unavailable=5))
    assert candidates(board) == ["0a", "1a"]
    put(board, COMPLETE, "0a", "1a")
    assert candidates(board) == ["-migrate"]
    put(board, COMPLETE, "-migrate")
    assert candidates(board) == ["2a", "3a"]
    put(board, COMPLETE, "2a", "3a")
    assert candidates(board) == ["-check"]


def test_an_order_that_was_written_is_kept() -> None:
    after = StepSpec(name="first", work=PodWork(pod="web", index=9, tasks=("a",)))
    made = phase("dependency", (PODS[0].but(depends_on=("first",)), after))
    result = one(made, max_unavailable=2)
    assert result.steps == made.steps
    assert candidates(PhaseBoard(result)) == ["first"]


def test_gates_are_before_the_first_that_are_not_complete() -> None:
    made = one(phase("parallel"), canary=2)
    board = PhaseBoard(made, PhaseState(steps={0: COMPLETE, 2: COMPLETE}))
    assert candidates(board) == []
    assert go(board) == ["1a"]
    put(board, COMPLETE, "1a")
    assert candidates(board) == []
    assert go(board) == ["3a", "4a"]  # the last continue lets the rest follow


def test_the_bound_holds_for_the_pods_that_were_continued() -> None:
    board = PhaseBoard(one(phase("parallel"), canary=3, max_unavailable=1))
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
    made = one(phase("parallel"), canary=2, max_unavailable=1)
    board = PhaseBoard(made, PhaseState(steps={4: AT_WORK}))
    assert go(board) == []
    put(board, COMPLETE, "4a")
    assert candidates(board) == ["0a"]


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
    board = PhaseBoard(rolled_out(plan(phase(strategy)), rollout).phases[0])
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
