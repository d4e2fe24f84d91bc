"""What `explain` says would move an element, does move it (domain.explain)."""

from collections.abc import Callable
from typing import Literal

import pytest

from builders.boards import tell
from builders.clock import NOW
from builders.plans import NO_WORK, phase_spec, plan_spec, step_spec
from temporal_plans.cli.terminal.explaining import explanation_lines
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.kinds.pod import PodWork
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PhaseBoard, PlanBoard
from temporal_plans.domain.plans.cause import Cause
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.explain import explain
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import awaiting, begun, delayed, failed

CANARY = StrategySpec(name="canary")


def board(
    *, plan: StrategySpec | None = None, phase: StrategySpec | None = None, approval: bool = False
) -> PlanBoard:
    """A plan of two phases of two steps, ``web`` and ``db``, ``a`` and ``b``."""
    first = step_spec("a", ApprovalWork() if approval else NO_WORK)
    strategy = phase or StrategySpec()
    phases = (phase_spec(name, first, "b c", strategy=strategy) for name in ("web", "db"))
    return PlanBoard(plan_spec(*phases, name="p", strategy=plan or StrategySpec()))


def give(plans: PlanBoard, verb: Verb, *names: str) -> bool:
    """A command; whether it changed anything."""
    return tell(plans, verb, *names).changed


def interrupted(*names: str) -> PlanBoard:
    made = board()
    assert give(made, Verb.INTERRUPT, *names)
    return made


def waiting_for_approval() -> PlanBoard:
    made = board(approval=True)
    web: PhaseBoard = made.phases[0]
    web.set(0, awaiting(web.steps[0], "waits for approval", NOW))
    return made


def failing() -> PlanBoard:
    made = board()
    made.phases[0].set(0, failed(made.phases[0].steps[0], "no such host"))
    return made


CASES = [
    pytest.param(lambda: interrupted(), (), [("continue",)], id="the-plan"),
    pytest.param(lambda: interrupted(), (0, 0), [("continue",)], id="a-step-of-it"),
    pytest.param(lambda: interrupted("web"), (), [("continue", "web")], id="a-phase"),
    pytest.param(lambda: interrupted("web"), (0, 0), [("continue", "web")], id="its-step"),
    pytest.param(lambda: board(phase=CANARY), (0,), [("continue", "web")], id="a-gate"),
    pytest.param(lambda: board(phase=CANARY), (0, 0), [("continue", "web")], id="a-gates-step"),
    pytest.param(lambda: board(plan=CANARY), (0,), [("continue", "web")], id="a-gate-of-the-plan"),
    pytest.param(waiting_for_approval, (0,), [("continue", "web", "a")], id="an-approval"),
    pytest.param(waiting_for_approval, (0, 0), [("continue", "web", "a")], id="its-step-of-all"),
    pytest.param(failing, (0, 0), [("restart", "web", "a")], id="a-failure"),
    pytest.param(board, (), [], id="nothing-waits"),
    pytest.param(board, (0, 1), [], id="a-predecessor"),
]


@pytest.mark.parametrize(("make", "asked", "remedies"), CASES)
def test_the_remedy_is_taken(
    make: Callable[[], PlanBoard], asked: tuple[int, ...], remedies: list[tuple[str, ...]]
) -> None:
    phase, step = (*asked, None, None)[:2]
    answers = explain(make(), phase, step).explanations
    found = list(dict.fromkeys(answer.remedy for answer in answers if answer.remedy))
    assert found == remedies
    for verb, *names in remedies:
        after = make()
        assert give(after, Verb(verb), *names)
        assert explain(after, phase, step).explanations != answers


def test_it_is_a_command_to_copy() -> None:
    made = board()
    made.phases[0].set(1, failed(made.phases[0].steps[1], "no such host"))
    lines = [line.plain for line in explanation_lines("p", explain(made, 0, 1), "my svc")]
    assert lines[-1] == "    to retry: temporal plan restart p web 'b c' -s 'my svc'"


def test_it_is_said_once() -> None:
    lines = [
        line.plain for line in explanation_lines("p", explain(interrupted(), None, None), None)
    ]
    assert [line for line in lines if "to continue" in line] == [
        "    to continue: temporal plan continue p"
    ]


@pytest.mark.parametrize(("mode", "most"), [("child", 32), ("inline", 100)])
def test_a_step_for_which_there_is_no_room_yet(mode: Literal["child", "inline"], most: int) -> None:
    names = [f"s{number}" for number in range(most + 1)]
    phase = phase_spec("p", *names, strategy="parallel")
    made = PlanBoard(plan_spec(phase, name="p", steps=mode))
    for index in range(most - 1):
        made.phases[0].set(index, begun(made.phases[0].steps[index], NOW))
    assert explain(made, 0, most).explanations[0].text.startswith(f"step s{most} is about to be")
    made.phases[0].set(most - 1, begun(made.phases[0].steps[most - 1], NOW))
    [last] = explain(made, 0, most).explanations
    assert last.cause is Cause.PREDECESSOR
    assert last.text == (
        f"step s{most} waits for its turn: {most} steps of its phase are at work, "
        "which is the limit"
    )


def test_a_step_that_failed_before_it_began_is_told_of() -> None:
    """Its workflow could not be started, say."""
    made = board()
    made.phases[0].fail("its workflow ended")
    told = explain(made, None, None).explanations
    assert [(one.step, one.cause) for one in told if one.phase == "web"] == [
        ("a", Cause.ERROR),
        ("b c", Cause.ERROR),
    ]


def test_tasks_of_a_step_are_named_once_it_launched_them() -> None:
    """Also by the plan, whose mirror of a step has no tasks."""
    web = step_spec("web-0:[app]", PodWork(pod="web", index=0, tasks=("app",)))
    plans = PlanBoard(plan_spec(phase_spec("web", web)))
    [one] = explain(plans, 0, 0).explanations
    assert one.tasks == ()
    state = delayed(begun(plans.phases[0].steps[0], NOW), "exit code 3", Backoff(), NOW)
    plans.phases[0].set(0, state)
    [one] = explain(plans, 0, 0).explanations
    assert (one.cause, one.tasks, one.attempt) == (Cause.BACKOFF, ("web-0-app",), 1)


def test_a_phase_in_error_does_not_wait_for_another() -> None:
    plans = board(plan=StrategySpec(name="parallel"))
    for phase in plans.phases:
        phase.set(0, failed(begun(phase.steps[0], NOW), "no such host"))
    found = explain(plans, None, None).explanations
    assert Cause.PREDECESSOR not in {one.cause for one in found if not one.step}
    assert {one.phase for one in found if one.cause is Cause.ERROR} == {"web", "db"}


@pytest.mark.parametrize("element", [(), (1,), (0, 1), (1, 0)], ids=str)
def test_the_text_lists_all_that_an_element_waits_for(element: tuple[int, ...]) -> None:
    phase, step = (*element, None, None)[:2]
    answers = explain(board(), phase, step)
    for one in answers.explanations:
        assert all(name in one.text for name in one.waits_for)
    lines = [str(line) for line in explanation_lines("p", answers)]
    assert len(lines) == 1 + len(answers.explanations)
    if element:
        assert answers.explanations[0].waits_for
