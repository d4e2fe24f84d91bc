"""What a step in ERROR means for the other steps: ``on_error`` of a plan."""

from typing import Literal

import pytest

from builders.boards import tell
from builders.clock import NOW
from builders.plans import phase_spec, plan_spec
from builders.step_states import STATES, in_states
from temporal_plans.domain.plans.board import PhaseState, PlanBoard, PlanState
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import OrderVerb, Verb, apply_order, halt_orders
from temporal_plans.domain.plans.explain import explain
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState, halted, resumed

REASON = "step a0 of phase a is in error"


def board(*phases: str, on_error: Literal["continue", "stop"] = "stop") -> PlanBoard:
    """A parallel plan of the parallel phases a, b, …, whose steps a0, a1, … are in these states."""
    specs = [
        phase_spec(name, *(f"{name}{i}" for i in range(len(states.split()))), strategy="parallel")
        for name, states in zip("abc", phases, strict=False)
    ]
    spec = plan_spec(*specs, strategy="parallel", on_error=on_error)
    states = {i: PhaseState(steps=in_states(letters)) for i, letters in enumerate(phases)}
    return PlanBoard(spec, PlanState(phases=states))


def halt(board: PlanBoard) -> None:
    """What the phase with the error does, and what the plan has the others do."""
    for phase in board.phases:
        if phase.halted:
            phase.halt(phase.halt_reason)
    for order in halt_orders(board):
        apply_order(board.phases[order.phase], order, NOW)


def shown(board: PlanBoard) -> list[str]:
    return [" ".join(step.shown for step in phase.steps) for phase in board.phases]


def test_a_plan_that_continues_is_not_halted() -> None:
    made = board("E SG P", "P", on_error="continue")
    assert (made.halted, made.halt_reason) == (False, "")
    assert made.candidates() == [1]
    assert made.phases[0].candidates() == [1, 2]


def test_a_plan_that_stops_lets_nothing_begin() -> None:
    made = board("E SG P", "P", "C SG")
    assert (made.halted, made.halt_reason) == (True, REASON)
    assert (made.candidates(), made.permitted()) == ([], set())
    assert made.phases[0].candidates() == []
    assert made.status is Status.ERROR


def test_a_halt_resets_what_has_begun_and_nothing_else() -> None:
    made = board("E SG P C", "P W", "C SD D R PR")
    halt(made)
    assert shown(made) == [
        "ERROR PENDING PENDING COMPLETE",
        "PENDING WAITING",
        "COMPLETE PENDING PENDING PENDING PENDING",
    ]
    reasons = [step.reason for phase in made.phases for step in phase.steps]
    assert [bool(reason) for reason in reasons] == [
        False,
        True,
        False,
        False,
        False,
        False,
        False,
    ] + [True] * 4
    assert set(reasons) == {"", f"halted: {REASON}"}
    assert not any(step.begun for step in made.phases[2].steps)


def test_phases_that_are_complete_or_failed_get_no_order() -> None:
    orders = halt_orders(board("E SG", "C", "P"))
    assert [(order.phase, order.verb, order.reason) for order in orders] == [
        (2, OrderVerb.HALT, REASON)
    ]


@pytest.mark.parametrize("verb", [Verb.RESTART, Verb.FORCE_COMPLETE])
def test_the_plan_goes_on_when_no_step_is_in_error(verb: Verb) -> None:
    made = board("E SG P", "SG")
    halt(made)
    assert tell(made, verb, "a", "a0").changed
    assert not made.halted
    assert made.candidates() == [0, 1]
    assert [phase.resume() for phase in made.phases] == [[1], [0]]
    assert made.phases[0].steps[1:] == [StepState(), StepState()]


def test_another_error_keeps_it_halted() -> None:
    made = board("E", "E P")
    tell(made, Verb.FORCE_COMPLETE, "a", "a0")
    assert made.halt_reason == "step b0 of phase b is in error"
    assert made.candidates() == []


@pytest.mark.parametrize("letter", ["SG", "SD", "D", "R", "PR"])
def test_a_step_at_work_is_halted_with_what_it_kept(letter: str) -> None:
    state = halted(STATES[letter].but(kept={"made": 3}), "why")
    assert state == StepState(reason="why", cause=Cause.HALTED, kept={"made": 3})
    assert resumed(state) == StepState(kept={"made": 3})


@pytest.mark.parametrize("letter", ["P", "W", "C", "E"])
def test_a_step_that_is_not_at_work_is_left(letter: str) -> None:
    assert halted(STATES[letter], "why") is STATES[letter]
    assert resumed(STATES[letter]) is STATES[letter]


def test_an_approval_that_waits_is_asked_for_again() -> None:
    waiting = STATES["R"].but(interrupted=True, reason="waits for approval")
    assert halted(waiting, "why").interrupted is False


def test_explain_names_the_step_that_failed() -> None:
    made = board("E SG", "P")
    halt(made)
    plan = explain(made, None, None).explanations
    assert [(one.cause, one.phase, one.step) for one in plan] == [
        (Cause.HALTED, "", ""),
        (Cause.ERROR, "a", "a0"),
    ]
    assert plan[0].text == f"nothing more begins (on-error: stop): {REASON}"
    assert plan[1].remedy == (Verb.RESTART, "a", "a0")
    for phase, step in ((1, None), (1, 0), (0, 1)):
        (one,) = explain(made, phase, step).explanations
        assert (one.cause, REASON in one.text) == (Cause.HALTED, True)


@pytest.mark.parametrize(
    ("phases", "on_error", "resting"),
    [
        pytest.param(("P", "P"), "continue", False, id="about-to-begin"),
        pytest.param(("SG", "C"), "continue", False, id="under-way"),
        pytest.param(("D", "C"), "continue", False, id="waits-for-its-next-attempt"),
        pytest.param(("R", "C"), "continue", False, id="is-tried-again"),
        pytest.param(("E", "SG"), "continue", False, id="another-phase-continues"),
        pytest.param(("E", "P"), "continue", False, id="another-phase-may-begin"),
        pytest.param(("E P", "C"), "continue", True, id="its-phase-does-not"),
        pytest.param(("E P", "P"), "stop", True, id="it-stops"),
        pytest.param(("E SG", "P"), "stop", False, id="it-is-about-to-stop"),
        pytest.param(("C", "C"), "continue", True, id="complete"),
    ],
)
def test_a_plan_rests_when_nothing_is_at_work(
    phases: tuple[str, ...], on_error: Literal["continue", "stop"], resting: bool
) -> None:
    assert board(*phases, on_error=on_error).resting is resting


def test_a_plan_that_waits_for_approval_does_not_rest() -> None:
    made = board("R", "C")
    made.phases[0].set(0, made.phases[0].steps[0].but(interrupted=True))
    assert made.status is Status.WAITING
    assert not made.resting


def test_a_stop_is_told_from_an_interrupt() -> None:
    made = board("C SG", "P")
    tell(made, Verb.INTERRUPT)
    assert (made.resting, made.is_stopped) == (False, False)
    made.phases[0].set(1, STATES["P"])
    assert (made.resting, made.is_stopped) == (True, False)
    tell(made, Verb.STOP)
    assert (made.resting, made.is_stopped) == (True, True)
    tell(made, Verb.START)
    assert (made.resting, made.is_stopped) == (False, False)
