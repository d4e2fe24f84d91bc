"""Commands to a plan that is not reentrant."""

import pytest

from builders.boards import carry_out
from builders.plans import phase_spec, plan_spec
from builders.step_states import in_states
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.plans.board import PhaseState, PlanBoard, PlanState
from temporal_plans.domain.plans.commands import Command, CommandRefused, Verb, decide
from temporal_plans.domain.plans.explain import explain
from temporal_plans.domain.values.refusal import Code


def board(states: str, *, reentrant: bool = False, interrupted: bool = False) -> PlanBoard:
    spec = plan_spec(phase_spec("p", "a", "b"), reentrant=reentrant)
    phases = {0: PhaseState(steps=in_states(states))}
    return PlanBoard(spec, PlanState(phases=phases, interrupted=interrupted))


def code(board: PlanBoard, verb: Verb, *names: str, force: bool = False) -> str:
    """The code of the refusal; empty when the command is accepted."""
    phase, step = (*names, "", "")[:2]
    try:
        decision = decide(board, "p", verb, Command(phase=phase, step=step, force=force))
    except CommandRefused as refused:
        return str(refused.refusal.code)
    carry_out(board, decision)
    return ""


VERBS = pytest.mark.parametrize(
    ("verb", "names"),
    [
        (Verb.STOP, ()),
        (Verb.RESTART, ()),
        (Verb.RESTART, ("p",)),
        (Verb.RESTART, ("p", "a")),
    ],
)


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("states", ["P P", "C SG", "E P", "C P", "D P", "PR P"])
@VERBS
def test_once_it_has_begun_it_is_repeated_by_force_only(
    verb: Verb, names: tuple[str, ...], states: str, reentrant: bool, force: bool
) -> None:
    refused = not (reentrant or force)
    found = code(board(states, reentrant=reentrant), verb, *names, force=force)
    assert found == ("not-reentrant" if refused else "")


@VERBS
def test_before_it_may_begin_nothing_is_refused(verb: Verb, names: tuple[str, ...]) -> None:
    """Where no step may begin: otherwise one may be at work already, which its phase has yet to
    report."""
    assert code(board("P P", interrupted=True), verb, *names) == ""


def test_the_refusal_says_what_to_do() -> None:
    with pytest.raises(CommandRefused) as refused:
        decide(board("SG P"), "p", Verb.STOP, Command())
    assert refused.value.refusal.code == Code.NOT_REENTRANT
    assert str(refused.value) == (
        "plan deploy is not reentrant and has begun, so stop is refused; "
        "let it end, or force the command (--force)"
    )
    assert http_code(refused.value.outcome) == 409


def test_a_complete_plan_is_repeated_as_a_whole() -> None:
    assert code(board("C C"), Verb.START) == ""
    assert code(board("C C"), Verb.RESTART) == ""
    assert code(board("C C"), Verb.RESTART, "p") == "not-reentrant"


def test_other_commands_work_as_ever_and_are_not_forced() -> None:
    made = board("SG P")
    assert code(made, Verb.INTERRUPT) == ""
    assert code(made, Verb.CONTINUE) == ""
    assert code(made, Verb.FORCE_COMPLETE, "p", "a") == ""
    for verb in (Verb.START, Verb.INTERRUPT, Verb.CONTINUE, Verb.FORCE_COMPLETE):
        assert code(made, verb, force=True) == "not-applicable"


def test_a_stop_by_force_lets_it_begin_once_more() -> None:
    made = board("C SG")
    assert code(made, Verb.STOP, force=True) == ""
    assert code(made, Verb.STOP) == ""
    assert code(made, Verb.START) == ""


def test_explain_gives_the_command_that_is_accepted() -> None:
    (failed,) = explain(board("E P"), 0, 0).explanations
    assert failed.remedy == (Verb.RESTART, "p", "a", "--force")
