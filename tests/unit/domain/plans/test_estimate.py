"""The expected remaining time of a plan."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.clock import NOW, at, seconds
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.plans.board import PlanBoard
from temporal_plans.domain.plans.estimate import (
    TimedPhase,
    TimedPlan,
    TimedStep,
    averaged,
    measured,
    remaining,
    timed_plan,
)
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies import NAMES
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import begun, completed, forced


def strategy(name: str) -> StrategySpec:
    return StrategySpec(name=name, limit=2, waves=(1, 2))


def plan(*phases: TimedPhase, name: str = "serial") -> TimedPlan:
    return TimedPlan(strategy=strategy(name), phases=phases)


def phase(*steps: TimedStep, name: str = "p", by: str = "serial") -> TimedPhase:
    return TimedPhase(name=name, strategy=strategy(by), steps=steps)


def step(name: str, status: Status = Status.PENDING, **more: object) -> TimedStep:
    return TimedStep.model_validate({"name": name, "status": status, **more})


ABC = (step("a"), step("b"), step("c", depends_on=("a",)))
TIMES = {"p/a": 10.0, "p/b": 20.0, "p/c": 5.0}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("serial", 35),
        ("canary", 35),
        ("serial-canary", 35),
        ("random", 35),
        ("parallel", 20),
        ("parallel-canary", 20),
        ("max-parallel", 20),
        ("waves", 30),
        ("dependency", 20),
        ("dependency-canary", 20),
        ("one of the users' own", 20),
    ],
)
def test_strategies(by: str, expected: float) -> None:
    assert remaining(plan(phase(*ABC, by=by)), TIMES, NOW) == seconds(expected)


def test_a_bound_that_makes_it_longer_than_the_longest_step() -> None:
    times = {"p/a": 10.0, "p/b": 10.0, "p/c": 10.0}
    assert remaining(plan(phase(*ABC, by="max-parallel")), times, NOW) == seconds(15)


def test_a_chain_of_dependencies() -> None:
    times = {"p/a": 10.0, "p/b": 12.0, "p/c": 5.0}
    assert remaining(plan(phase(*ABC, by="dependency")), times, NOW) == seconds(15)


def test_a_circle_is_no_trap() -> None:
    steps = (step("a", depends_on=("b",)), step("b", depends_on=("a",)))
    assert remaining(plan(phase(*steps, by="dependency")), TIMES, NOW) == seconds(20)


@pytest.mark.parametrize(("name", "expected"), [("serial", 60), ("parallel", 40)])
def test_phases_go_by_the_plans_strategy(name: str, expected: float) -> None:
    tree = plan(phase(step("a"), name="one"), phase(step("b"), name="two"), name=name)
    assert remaining(tree, {"one/a": 20.0, "two/b": 40.0}, NOW) == seconds(expected)


@pytest.mark.parametrize(
    ("status", "started", "expected"),
    [
        pytest.param(Status.PENDING, None, 10, id="not begun"),
        pytest.param(Status.COMPLETE, at(-4), 0, id="complete"),
        pytest.param(Status.STARTING, at(-4), 6, id="under way"),
        pytest.param(Status.STARTED, at(-60), 0, id="overdue"),
        pytest.param(Status.PREPARED, None, 10, id="waits for an agent"),
        pytest.param(Status.DELAYED, at(-4), 10, id="is tried again"),
        pytest.param(Status.ERROR, at(-4), 10, id="must be restarted"),
    ],
)
def test_how_far_a_step_is(status: Status, started: datetime | None, expected: float) -> None:
    tree = plan(phase(step("a", status, started=started), step("b")))
    assert remaining(tree, TIMES, NOW) == seconds(expected + 20)


def test_steps_that_are_new_are_as_long_as_their_like() -> None:
    tree = plan(phase(step("a"), step("new")), phase(step("x"), name="new phase"))
    times = {"p/a": 10.0, "p/b": 20.0, "q/c": 60.0}
    assert remaining(tree, times, NOW) == seconds(10 + 15 + 30)


def test_nothing_known() -> None:
    assert remaining(plan(phase(*ABC)), {}, NOW) is None


@pytest.mark.parametrize("times", [{}, TIMES], ids=["nothing known", "known"])
def test_nothing_to_do(times: dict[str, float]) -> None:
    assert remaining(plan(phase(step("a", Status.COMPLETE))), times, NOW) == timedelta(0)
    assert remaining(plan(), times, NOW) == timedelta(0)


def test_from_one_run_to_the_next() -> None:
    work = SleepWork(duration=seconds(1))
    spec = PlanSpec(
        name="plan",
        phases=(PhaseSpec(name="p", steps=tuple(StepSpec(name=n, work=work) for n in "abc")),),
    )
    board = PlanBoard(spec)
    steps = board.phases[0]
    steps.set(0, completed(begun(steps.steps[0], at(0)), at(10)))
    steps.set(1, forced(begun(steps.steps[1], at(10)), at(90)))
    assert measured(board) == {"p/a": 10.0}
    steps.set(2, begun(steps.steps[2], at(90)))
    assert remaining(timed_plan(board), {"p/c": 8.0}, at(95)) == seconds(3)
    assert averaged([measured(board), {"p/a": 20.0, "p/c": 4.0}]) == {"p/a": 15.0, "p/c": 4.0}


@given(
    by=st.sampled_from(sorted(NAMES)),
    outer=st.sampled_from(sorted(NAMES)),
    times=st.lists(st.floats(0, 1e6), min_size=1, max_size=8),
    done=st.integers(0, 8),
)
def test_never_shorter_than_the_longest_step_nor_longer_than_all(
    by: str, outer: str, times: list[float], done: int
) -> None:
    steps = tuple(
        step(f"s{i}", Status.COMPLETE if i < done else Status.PENDING) for i in range(len(times))
    )
    durations = {f"p/s{i}": time for i, time in enumerate(times)}
    left = remaining(plan(phase(*steps, by=by), name=outer), durations, NOW)
    assert left is not None
    open_times = [*times[done:], 0.0]
    slack = 1e-3
    assert max(open_times) - slack <= left.total_seconds() <= sum(open_times) + slack
