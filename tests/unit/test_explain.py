"""What `explain` says would move an element, does move it (domain.explain)."""

from collections.abc import Callable
from datetime import timedelta
from typing import Literal

import pytest

from temporal_plans.cli.explaining import explanation_lines
from temporal_plans.domain.board import PhaseBoard, PlanBoard
from temporal_plans.domain.commands import Verb
from temporal_plans.domain.explain import Cause, explain
from temporal_plans.domain.plan import (
    ApprovalWork,
    PhaseSpec,
    PlanSpec,
    SleepWork,
    StepSpec,
    StrategySpec,
)
from temporal_plans.domain.transitions import awaiting, begun, failed
from unit.board_kit import NOW, tell

SLEEP = SleepWork(duration=timedelta(seconds=1))
CANARY = StrategySpec(name="canary")


def board(
    *, plan: StrategySpec | None = None, phase: StrategySpec | None = None, approval: bool = False
) -> PlanBoard:
    """A plan of two phases of two steps, ``web`` and ``db``, ``a`` and ``b``."""
    first = StepSpec(name="a", work=ApprovalWork() if approval else SLEEP)
    strategy = phase or StrategySpec()
    phases = tuple(
        PhaseSpec(name=name, strategy=strategy, steps=(first, StepSpec(name="b c", work=SLEEP)))
        for name in ("web", "db")
    )
    return PlanBoard(PlanSpec(name="p", strategy=plan or StrategySpec(), phases=phases))


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
    assert lines[-1] == "    to try again: temporal plan restart p web 'b c' -s 'my svc'"


def test_it_is_said_once() -> None:
    lines = [
        line.plain for line in explanation_lines("p", explain(interrupted(), None, None), None)
    ]
    assert [line for line in lines if "to go on" in line] == [
        "    to go on: temporal plan continue p"
    ]


@pytest.mark.parametrize(("mode", "most"), [("child", 32), ("inline", 100)])
def test_a_step_for_which_there_is_no_room_yet(mode: Literal["child", "inline"], most: int) -> None:
    names = [f"s{number}" for number in range(most + 1)]
    phase = PhaseSpec(
        name="p",
        strategy=StrategySpec(name="parallel"),
        steps=tuple(StepSpec(name=name, work=SLEEP) for name in names),
    )
    made = PlanBoard(PlanSpec(name="p", steps=mode, phases=(phase,)))
    for index in range(most - 1):
        made.phases[0].set(index, begun(made.phases[0].steps[index], NOW))
    assert explain(made, 0, most).explanations[0].text.startswith(f"step s{most} is about to be")
    made.phases[0].set(most - 1, begun(made.phases[0].steps[most - 1], NOW))
    [last] = explain(made, 0, most).explanations
    assert last.cause is Cause.PREDECESSOR
    assert last.text == (
        f"step s{most} waits for its turn: {most} steps of its phase are at work, "
        "and no more may be"
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
