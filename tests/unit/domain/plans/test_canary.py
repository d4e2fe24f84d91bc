"""Canary gates (behaviour 2.6): on steps in a phase, and on the phases of a plan (design 8)."""

import pytest

from builders.boards import board_of, tell
from builders.clock import NOW
from builders.plans import NO_WORK, phase_spec, plan_spec, step_spec
from builders.step_states import COMPLETE
from temporal_plans.api.dialect import http_code
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.plans.board import PhaseBoard, PhaseState, PlanBoard, PlanState
from temporal_plans.domain.plans.commands import Order, OrderVerb, Verb, apply_order
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.plans.transitions import StepState, awaiting, begun, prepared


class Phase:
    """One canary phase as an operator sees it, steps a, b, c, …"""

    def __init__(
        self,
        steps: int,
        strategy: str = "serial-canary",
        *,
        proceeds: int = 2,
        complete: str = "",
        depends: dict[str, tuple[str, ...]] | None = None,
        approval: str = "",
    ) -> None:
        names = [chr(ord("a") + i) for i in range(steps)]
        made = (
            step_spec(
                name,
                ApprovalWork() if name in approval else NO_WORK,
                depends_on=(depends or {}).get(name, ()),
            )
            for name in names
        )
        spec = phase_spec("p", *made, strategy=StrategySpec(name=strategy, proceeds=proceeds))
        states = {names.index(name): COMPLETE for name in complete}
        self.board = PhaseBoard(spec, PhaseState(steps=states))

    def go(self, verb: OrderVerb = OrderVerb.PROCEED) -> str:
        """An order to the phase; the candidates after it."""
        apply_order(self.board, Order(phase=0, verb=verb), NOW)
        return self.candidates

    def done(self, names: str) -> str:
        for name in names:
            self.board.set(self._index(name), COMPLETE)
        return self.candidates

    def put(self, name: str, state: StepState) -> None:
        self.board.set(self._index(name), state)

    @property
    def candidates(self) -> str:
        return "".join(self.board.spec.steps[i].name for i in self.board.candidates())

    @property
    def gates(self) -> str:
        return "".join(self.board.spec.steps[i].name for i in self.board.canary)

    @staticmethod
    def _index(name: str) -> int:
        return ord(name) - ord("a")


# --- what each continue releases ------------------------------------------------------------------


def test_serial_canary() -> None:
    phase = Phase(4)
    assert (phase.candidates, phase.board.status) == ("", Status.WAITING)
    assert phase.go() == "a"
    assert phase.done("a") == ""  # stops after the first
    assert phase.go() == "b"
    assert phase.done("b") == "c"  # and from then on rolls with no more input
    assert phase.done("c") == "d"
    assert (phase.done("d"), phase.board.status) == ("", Status.COMPLETE)


def test_parallel_canary() -> None:
    phase = Phase(4, "parallel-canary")
    assert phase.go() == "a"
    assert phase.done("a") == ""
    assert phase.go() == "bcd"  # the second and all others at once


def test_dependency_canary() -> None:
    """Custom steps under a parallel canary: pod 0 is a then b, pod 1 is c then d. The canaries are
    the first two steps of the list; after them the order of each pod applies."""
    phase = Phase(4, "dependency-canary", depends={"b": ("a",), "d": ("c",)})
    assert phase.gates == "ab"
    assert phase.go() == "a"
    assert phase.go() == "ac"  # b is behind a in the same pod
    assert phase.done("a") == "bc"
    assert phase.done("c") == "bd"


@pytest.mark.parametrize("strategy", ["serial-canary", "parallel-canary", "dependency-canary"])
def test_one_step_that_is_left_needs_one_continue(strategy: str) -> None:
    phase = Phase(3, strategy, complete="ab")
    assert (phase.gates, phase.board.status) == ("c", Status.WAITING)
    assert phase.go() == "c"
    assert (phase.done("c"), phase.board.status) == ("", Status.COMPLETE)


@pytest.mark.parametrize(("steps", "complete"), [(0, ""), (2, "ab")], ids=["none", "complete"])
def test_nothing_left_needs_no_continue(steps: int, complete: str) -> None:
    phase = Phase(steps, complete=complete)
    assert (phase.gates, phase.board.status) == ("", Status.COMPLETE)
    assert phase.go() == ""
    assert phase.board.status is Status.COMPLETE


def test_a_further_continue_changes_nothing() -> None:
    phase = Phase(3)
    phase.go()
    phase.go()
    before = phase.board.state
    assert phase.go() == "a"
    assert phase.board.state == before


def test_two_quick_continues_open_both_gates() -> None:
    serial, parallel = Phase(3), Phase(3, "parallel-canary")
    serial.go()
    parallel.go()
    assert serial.go() == "a"  # b still waits for a: the order of the inner strategy
    assert serial.done("a") == "b"
    assert parallel.go() == "abc"


def test_three_proceeds() -> None:
    phase = Phase(5, "parallel-canary", proceeds=3)
    assert phase.gates == "abc"
    assert phase.go() == "a"
    assert phase.go() == "ab"
    assert phase.go() == "abcde"


def test_complete_steps_are_skipped() -> None:
    """Behaviour 2.6 [T]: with 0 and 2 of 5 complete the continues release 1 and 3, then 4 goes."""
    phase = Phase(5, complete="ac")
    assert phase.gates == "bd"
    assert phase.go() == "b"
    assert phase.done("b") == ""
    assert phase.go() == "d"
    assert phase.done("d") == "e"


def test_fewer_steps_than_proceeds() -> None:
    phase = Phase(2, proceeds=3)
    assert phase.gates == "ab"
    assert phase.go() == "a"
    phase.done("a")
    assert phase.go() == "b"
    phase.done("b")
    assert phase.board.status is Status.COMPLETE


def test_steps_in_error_are_no_canaries() -> None:
    broken = step_spec("a", errors=("two tasks, one resource set",))
    spec = phase_spec("p", broken, "b", strategy="canary")
    assert PhaseBoard(spec).canary == (1,)


def test_a_forced_canary_needs_no_continue() -> None:
    phase = Phase(3)
    apply_order(phase.board, Order(phase=0, verb=OrderVerb.FORCE, step=0), NOW)
    assert phase.go() == "b"
    assert phase.done("b") == "c"


# --- interrupts (design 8: an interrupt always interrupts) ----------------------------------------


def test_an_interrupt_of_a_released_canary_is_kept_and_its_progress_untouched() -> None:
    phase = Phase(4)
    phase.go()
    assert phase.go(OrderVerb.INTERRUPT) == ""
    assert phase.board.status is Status.WAITING
    assert phase.go() == "a"  # the first continue lifts the interrupt …
    assert phase.board.closed_gate == 1  # … and opens no gate
    phase.done("a")
    assert phase.go() == "b"


def test_an_interrupt_after_the_canary_holds_until_a_continue() -> None:
    phase = Phase(4)
    phase.go()
    phase.go()
    phase.done("ab")
    assert phase.go(OrderVerb.INTERRUPT) == ""
    assert phase.go() == "c"


def test_while_a_released_canary_works_the_phase_is_not_interrupted() -> None:
    phase = Phase(4)
    assert phase.board.is_interrupted
    phase.go()
    assert not phase.board.is_interrupted
    phase.put("a", prepared(StepState(), "nothing fits"))
    assert (phase.board.is_interrupted, phase.board.status) == (False, Status.IN_PROGRESS)
    phase.put("a", begun(StepState(), NOW))
    assert (phase.board.is_interrupted, phase.board.status) == (False, Status.WAITING)
    phase.done("a")
    assert (phase.board.is_interrupted, phase.board.status) == (True, Status.WAITING)


# --- restarts -------------------------------------------------------------------------------------


def one_phase(steps: int) -> PlanBoard:
    names = (chr(ord("a") + i) for i in range(steps))
    return board_of(phase_spec("p", *names, strategy="canary"))


def test_a_restart_of_the_phase_releases_one_canary() -> None:
    board = one_phase(3)
    assert http_code(tell(board, Verb.RESTART, "p")) == 200
    assert (board.phases[0].candidates(), board.phases[0].closed_gate) == ([0], 1)


def test_a_restart_of_a_waiting_canary_step_opens_its_gate() -> None:
    board = one_phase(3)
    assert http_code(tell(board, Verb.RESTART, "p", "b")) == 200
    assert (board.phases[0].candidates(), board.phases[0].closed_gate) == ([1], 0)


def test_a_restart_after_the_canary_brings_no_gates_back() -> None:
    board = one_phase(3)
    for _ in range(2):
        tell(board, Verb.CONTINUE, "p")
    for i in range(3):
        board.phases[0].set(i, COMPLETE)
    assert http_code(tell(board, Verb.RESTART, "p")) == 200
    assert board.phases[0].candidates() == [0]
    assert board.phases[0].closed_gate is None


def test_a_stop_leaves_closed_gates_closed() -> None:
    board = one_phase(3)
    tell(board, Verb.CONTINUE, "p")
    board.phases[0].set(0, begun(board.phases[0].steps[0], NOW))
    tell(board, Verb.STOP)
    assert [step.shown for step in board.phases[0].steps] == [
        Status.PENDING,
        Status.WAITING,
        Status.PENDING,
    ]
    tell(board, Verb.START)
    assert board.phases[0].candidates() == [0]


# --- approvals among the canaries -----------------------------------------------------------------


def test_an_approval_as_a_canary_is_released_and_then_approved() -> None:
    phase = Phase(3, approval="a")
    assert phase.go() == "a"  # the gate before it
    phase.put("a", awaiting(phase.board.steps[0], "ask the owner", NOW))
    assert (phase.candidates, phase.board.status) == ("", Status.WAITING)
    assert phase.board.approvals() == [0]
    assert phase.board.waits() == "phase p waits for approval of a"
    assert phase.go() == ""  # what it said it waits for: the approval, not the next gate
    assert phase.board.steps[0].complete
    assert phase.board.waits() == "phase p waits at the canary gate before b"
    assert phase.go() == "b"


# --- the plan's own canary ------------------------------------------------------------------------


def four_phases(strategy: str = "canary", made: dict[int, PhaseState] | None = None) -> PlanBoard:
    phases = (phase_spec(f"p{i}", "a", "b", strategy="parallel") for i in range(4))
    return PlanBoard(plan_spec(*phases, strategy=strategy), PlanState(phases=made or {}))


def finish(board: PlanBoard, phase: int) -> None:
    for i in range(len(board.phases[phase].steps)):
        board.phases[phase].set(i, COMPLETE)


def test_a_serial_canary_of_phases() -> None:
    board = four_phases()
    assert [phase.status.value[0] for phase in board.phases] == list("WWPP")
    assert (board.status, board.candidates()) == (Status.WAITING, [])
    assert tell(board, Verb.CONTINUE).changed
    assert (board.status, board.candidates()) == (Status.PENDING, [0])
    finish(board, 0)
    assert (board.status, board.candidates()) == (Status.WAITING, [])
    assert tell(board, Verb.CONTINUE).changed
    assert (board.status, board.candidates()) == (Status.IN_PROGRESS, [1])
    finish(board, 1)
    assert board.candidates() == [2]
    finish(board, 2)
    finish(board, 3)
    assert board.status is Status.COMPLETE


def test_a_parallel_canary_of_phases() -> None:
    board = four_phases("parallel-canary")
    tell(board, Verb.CONTINUE)
    assert board.candidates() == [0]
    tell(board, Verb.CONTINUE)
    assert board.candidates() == [0, 1, 2, 3]


def test_a_continue_of_the_phase_opens_its_gate_too() -> None:
    board = four_phases()
    tell(board, Verb.CONTINUE, "p1")
    assert (board.candidates(), board.closed_gate) == ([1], 0)


def test_an_interrupt_of_the_plan_is_lifted_before_a_gate_opens() -> None:
    board = four_phases()
    tell(board, Verb.CONTINUE)
    assert http_code(tell(board, Verb.INTERRUPT)) == 200
    assert board.candidates() == []
    tell(board, Verb.CONTINUE)
    assert (board.candidates(), board.closed_gate) == ([0], 1)


def test_phases_that_are_partly_complete_when_the_plan_is_made_are_canaries() -> None:
    """A configuration update: in every phase one step needs nothing done, and reads IN_PROGRESS."""
    half = PhaseState(steps={0: COMPLETE})
    board = four_phases(made={0: half, 1: half, 2: half, 3: half})
    assert (board.canary, board.status, board.candidates()) == ((0, 1), Status.WAITING, [])


def test_phases_that_are_complete_when_the_plan_is_made_are_no_canaries() -> None:
    full = PhaseState(steps={0: COMPLETE, 1: COMPLETE})
    board = four_phases(made={0: full, 2: full})
    assert board.canary == (1, 3)


def test_a_gated_phase_whose_steps_are_forced_needs_no_continue() -> None:
    board = four_phases()
    for step in ("a", "b"):
        tell(board, Verb.FORCE_COMPLETE, "p0", step)
    assert board.closed_gate == 1
    tell(board, Verb.CONTINUE)
    assert board.candidates() == [1]


def test_the_gates_survive_being_carried() -> None:
    board = four_phases()
    tell(board, Verb.CONTINUE)
    again = PlanBoard(board.spec, PlanState.model_validate_json(board.state.model_dump_json()))
    assert (again.canary, again.closed_gate, again.candidates()) == ((0, 1), 1, [0])
    assert again.state == board.state
