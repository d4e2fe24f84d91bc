"""Recovery phases that developers decide on."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from builders.clock import at
from builders.plans import phase_doing
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.kinds.sleep import SleepWork
from temporal_plans.domain.plans.plan import PhaseSpec
from temporal_plans.domain.services.recovery.book import (
    Recoverer,
    RecoverySituation,
)
from temporal_plans.domain.services.recovery.failed import FailedPod
from unit.domain.services.recovery_decisions import (
    DOWN,
    EMPTY,
    SERVER,
    decided,
    names,
    taken,
)

# --- recovery by developers ----------------------------------------------------------------------


OWN = PodWork(pod="hello", index=0, tasks=("server",))


def pause(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return [phase_doing("custom-hello-recovery", SleepWork(duration=timedelta(0)), OWN, OWN)]


def leaves_it(failed: FailedPod, situation: RecoverySituation) -> None:
    return None


def raises(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    raise RuntimeError("no idea")


def nonsense(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return ["hello"]  # type: ignore[list-item]


def nothing(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return []


def no_order(failed: FailedPod, situation: RecoverySituation) -> Sequence[PhaseSpec]:
    return [phase_doing("a", OWN), phase_doing("b", OWN).but(depends_on=("a",))]


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
        return [phase_doing("own", OWN, failed.work("n1"))]

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
    assert said in str(problem)
    assert "hello-0" in str(problem)
    assert bool(problem.trace) is ("Error" in said)
    assert "in raises" in problem.trace or recoverer is not raises


def test_transient_by_default_then_permanent_by_a_developers_phase() -> None:
    """Behaviour 6.10: transientToCustomPermanentFailureTransition."""

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
        return [phase_doing("own", OWN, OWN, strategy=strategy)]

    (put,) = decided(EMPTY, DOWN.but(delayed_until=at(9)), recoverers=[two]).put
    states = [put.state.steps.get(index) for index in range(2)]
    assert [bool(state and state.delayed_until) for state in states] == expected
