"""The aggregate table, and the 39 cases of behaviour 1.6 with the mends of design 8."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations

import pytest

from builders.boards import tell
from builders.plans import phase_spec, plan_spec
from builders.step_states import STATES, in_states
from temporal_plans.domain.plans.board import PhaseState, PlanBoard, PlanState
from temporal_plans.domain.plans.commands import Verb
from temporal_plans.domain.plans.status import Status, aggregate, least

ERROR, WAITING, PENDING, PREPARED, STARTING, STARTED, COMPLETE, IN_PROGRESS, DELAYED = Status

LETTERS = {
    "C": COMPLETE,
    "P": PENDING,
    "W": WAITING,
    "PR": PREPARED,
    "SG": STARTING,
    "SD": STARTED,
    "IP": IN_PROGRESS,
    "D": DELAYED,
    "E": ERROR,
}


def statuses(letters: str) -> list[Status]:
    return [LETTERS[letter] for letter in letters.split()]


def test_what_counts_as_running() -> None:
    assert {s for s in Status if s.running} == {PREPARED, STARTING, STARTED, IN_PROGRESS}


# --- 1.6, rows 1 to 17 ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("children", "candidates", "errors", "interrupted", "expected"),
    [
        pytest.param("", "", True, False, ERROR, id="1-errors"),
        pytest.param("E", "", False, False, ERROR, id="2-child-in-error"),
        pytest.param("", "", False, False, COMPLETE, id="3-nothing"),
        pytest.param("C C", "", False, False, COMPLETE, id="4-all-complete"),
        pytest.param("D D", "", False, False, DELAYED, id="5-all-delayed"),
        pytest.param("D", "", False, True, WAITING, id="6-delayed-interrupted"),
        pytest.param("C P", "", False, True, WAITING, id="7-interrupted"),
        pytest.param("C W", "", False, False, WAITING, id="8-child-waits"),
        pytest.param("C W", "W", False, False, WAITING, id="9-candidate-waits"),
        pytest.param("PR W", "", False, False, IN_PROGRESS, id="10-prepared-is-louder"),
        pytest.param("C IP", "IP", False, False, IN_PROGRESS, id="11-in-progress"),
        pytest.param("C P", "P", False, False, IN_PROGRESS, id="12-complete-and-pending"),
        pytest.param("C SG", "SG", False, False, IN_PROGRESS, id="13-complete-and-starting"),
        pytest.param("C SD", "SD", False, False, IN_PROGRESS, id="14-complete-and-started"),
        pytest.param("P P", "P", False, False, PENDING, id="15-pending"),
        pytest.param("SG P", "SG", False, False, STARTING, id="16-starting"),
        pytest.param("SD P", "SD", False, False, STARTED, id="17-started"),
    ],
)
def test_the_aggregate_of_children(
    children: str, candidates: str, errors: bool, interrupted: bool, expected: Status
) -> None:
    found = aggregate(
        statuses(children), statuses(candidates), errors=errors, interrupted=interrupted
    )
    assert found is expected


# --- 1.6, rows 18 to 39 ---------------------------------------------------------------------------

Event = Callable[[PlanBoard], None]


def told(verb: Verb, phase: str = "") -> Event:
    def event(board: PlanBoard) -> None:
        tell(board, verb, phase)

    return event


def becomes(phase: int, step: int, letter: str) -> Event:
    def event(board: PlanBoard) -> None:
        board.phases[phase].set(step, STATES[letter])

    return event


CONTINUE, CONTINUE_FIRST, CONTINUE_SECOND = (
    told(Verb.CONTINUE),
    told(Verb.CONTINUE, "phase-0"),
    told(Verb.CONTINUE, "phase-1"),
)
INTERRUPT = told(Verb.INTERRUPT)


@dataclass(frozen=True)
class Situation:
    """A serial plan whose phases hold steps as given, what happens, and what is then read.

    ``phases`` and ``steps`` are of all phases, separated by bars.
    """

    strategies: tuple[str, ...]
    made: tuple[str, ...]
    events: tuple[Event, ...] = ()
    steps: str = ""
    phases: str = ""
    plan: str = ""
    interrupted: bool = field(default=False)

    def board(self) -> PlanBoard:
        made = zip(self.strategies, self.made, strict=True)
        spec = plan_spec(
            *(
                phase_spec(
                    f"phase-{i}",
                    *(f"step-{k}" for k in range(len(letters.split()))),
                    strategy=strategy,
                )
                for i, (strategy, letters) in enumerate(made)
            )
        )
        phases = {i: PhaseState(steps=in_states(made)) for i, made in enumerate(self.made)}
        return PlanBoard(spec, PlanState(interrupted=self.interrupted, phases=phases))


S, C4 = ("serial",), ("canary",)
SITUATIONS = {
    "18-serial-pending-then-waiting": Situation(S, ("P W",), phases="P", plan="P"),
    "19-canary-of-two": Situation(C4, ("P P",), steps="W W", phases="W", plan="W"),
    "20-two-phases-pending": Situation(S + S, ("P", "P"), phases="P P", plan="P"),
    "21-first-in-error": Situation(S + S, ("E", "P"), phases="E P", plan="E"),
    "22-first-waiting": Situation(S + S, ("W", "P"), phases="W P", plan="W"),
    "23-first-prepared": Situation(S + S, ("PR", "P"), phases="IP P", plan="IP"),
    "24-first-complete-second-starting": Situation(S + S, ("C", "SG"), phases="C SG", plan="IP"),
    "25-interrupted-while-prepared": Situation(
        S + S, ("PR", "PR"), interrupted=True, phases="IP IP", plan="W"
    ),
    "25-and-after-proceed": Situation(
        S + S, ("PR", "PR"), (CONTINUE,), interrupted=True, phases="IP IP", plan="IP"
    ),
    "26-nothing-interrupted": Situation((), (), interrupted=True, plan="C"),
    "27-canary-made": Situation(C4, ("P P P P",), steps="W W P P", phases="W", plan="W"),
    "28-first-continue": Situation(
        C4, ("P P P P",), (CONTINUE_FIRST,), steps="P W P P", phases="P", plan="P"
    ),
    "29-first-prepared": Situation(
        C4,
        ("P P P P",),
        (CONTINUE_FIRST, becomes(0, 0, "PR")),
        steps="PR W P P",
        phases="IP",
        plan="IP",
    ),
    "30-first-starting": Situation(
        C4,
        ("P P P P",),
        (CONTINUE_FIRST, becomes(0, 0, "SG")),
        steps="SG W P P",
        phases="W",
        plan="W",
    ),
    "31-first-complete": Situation(
        C4,
        ("P P P P",),
        (CONTINUE_FIRST, becomes(0, 0, "C")),
        steps="C W P P",
        phases="W",
        plan="W",
    ),
    "32-second-continue": Situation(
        C4,
        ("P P P P",),
        (CONTINUE_FIRST, becomes(0, 0, "C"), CONTINUE_FIRST),
        steps="C P P P",
        phases="IP",
        plan="IP",
    ),
    "33-second-canary-continued-first": Situation(
        C4 + C4,
        ("P P P P", "P P P P"),
        (CONTINUE_SECOND,),
        steps="W W P P | P W P P",
        phases="W P",
        plan="W",
    ),
    "34-nothing-to-kill": Situation(S + S, ("", "P"), phases="C P", plan="IP"),
    "35-nothing-fits": Situation(S + S, ("PR", "P"), steps="PR | P", phases="IP P", plan="IP"),
    "36-crash-loop-in-a-serial-phase": Situation(S, ("D P",), phases="D", plan="D"),
    "36-with-something-complete": Situation(S, ("C D P",), phases="IP", plan="IP"),
    "37-one-step-delayed": Situation(S, ("D",), phases="D", plan="D"),
    "38-interrupted-before-it-began": Situation(
        S, ("P P",), interrupted=True, phases="P", plan="W"
    ),
    "39-interrupted-but-complete": Situation(S, ("C C",), interrupted=True, phases="C", plan="C"),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_the_status_of_phases_and_plans(situation: Situation) -> None:
    board = situation.board()
    for event in situation.events:
        event(board)
    assert [phase.status for phase in board.phases] == statuses(situation.phases)
    assert board.status is LETTERS[situation.plan]
    if situation.steps:
        shown = [[step.shown for step in phase.steps] for phase in board.phases]
        assert shown == [statuses(steps) for steps in situation.steps.split("|")]


def test_every_case_of_the_table_is_there() -> None:
    assert {int(name.split("-")[0]) for name in SITUATIONS} == set(range(18, 40))


# --- the table as a whole -------------------------------------------------------------------------

Row = Callable[[set[Status], set[Status], bool], bool]

# Behaviour 1.4 written down a second time, in its own words, with design 8 for row 15.
TABLE: list[tuple[Row, Status]] = [
    (lambda kids, picks, stopped: ERROR in kids, ERROR),
    (lambda kids, picks, stopped: all(kid is COMPLETE for kid in kids), COMPLETE),
    (lambda kids, picks, stopped: stopped, WAITING),
    (lambda kids, picks, stopped: {*kids, *picks} == {DELAYED}, DELAYED),
    (lambda kids, picks, stopped: PREPARED in kids, IN_PROGRESS),
    (lambda kids, picks, stopped: WAITING in picks, WAITING),
    (lambda kids, picks, stopped: IN_PROGRESS in picks, IN_PROGRESS),
    (lambda kids, picks, stopped: COMPLETE in kids and PENDING in picks, IN_PROGRESS),
    (lambda kids, picks, stopped: COMPLETE in kids and STARTING in picks, IN_PROGRESS),
    (lambda kids, picks, stopped: COMPLETE in kids and STARTED in picks, IN_PROGRESS),
    (lambda kids, picks, stopped: PENDING in picks, PENDING),
    (lambda kids, picks, stopped: WAITING in kids, WAITING),
    (lambda kids, picks, stopped: STARTING in picks, STARTING),
    (lambda kids, picks, stopped: STARTED in picks, STARTED),
    (lambda kids, picks, stopped: DELAYED in picks and COMPLETE in kids, IN_PROGRESS),
    (lambda kids, picks, stopped: DELAYED in picks, DELAYED),
    (lambda kids, picks, stopped: any(kid.running for kid in kids), IN_PROGRESS),
    (lambda kids, picks, stopped: True, ERROR),
]


def subsets(values: set[Status]) -> Iterator[set[Status]]:
    ordered = sorted(values)
    sizes = (combinations(ordered, size) for size in range(len(ordered) + 1))
    return (set(chosen) for chosen in chain.from_iterable(sizes))


@pytest.mark.parametrize("interrupted", [False, True], ids=["rolling", "interrupted"])
def test_the_first_row_that_matches_wins_for_every_combination(interrupted: bool) -> None:
    for kids in subsets(set(Status)):
        for picks in subsets(kids - {COMPLETE, ERROR}):
            expected = next(status for row, status in TABLE if row(kids, picks, interrupted))
            assert aggregate(kids, picks, interrupted=interrupted) is expected, (kids, picks)


@pytest.mark.parametrize("children", ["C", "C C", "P", "W", ""])
def test_errors_come_before_everything(children: str) -> None:
    assert aggregate(statuses(children), [], errors=True, interrupted=True) is ERROR


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        pytest.param("P SG SG", PENDING, id="pending"),
        pytest.param("SG SG C", STARTING, id="starting"),
        pytest.param("C C C", COMPLETE, id="complete"),
        pytest.param("E PR", ERROR, id="error"),
        pytest.param("C D P", DELAYED, id="delayed"),
        pytest.param("SD C", STARTED, id="started"),
        pytest.param("PR SD", PREPARED, id="prepared"),
    ],
)
def test_the_least_status_of_a_steps_tasks(tasks: str, expected: Status) -> None:
    assert least(statuses(tasks)) is expected


def test_a_status_is_found_by_its_name_in_sets_and_dicts() -> None:
    """JSON and callers use the names; Status hashes as its name."""
    assert "PENDING" in {PENDING}
    counts: dict[str, int] = {PENDING: 1}
    assert counts["PENDING"] == 1
