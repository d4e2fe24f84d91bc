"""Commands: what they do, and their answers (behaviour 10.2, design 5 and 8)."""

import pytest
from pydantic import ValidationError

from builders.boards import board_of, carry_out
from builders.clock import NOW
from builders.plans import phase_spec, step_spec
from builders.step_states import STATES
from temporal_plans.api.dialect import REFUSALS, RESULTS, http_code, message
from temporal_plans.domain.kinds.approval import ApprovalWork
from temporal_plans.domain.plans.board import PlanBoard, element_id
from temporal_plans.domain.plans.commands import (
    Command,
    CommandRefused,
    Decision,
    OrderVerb,
    Outcome,
    Result,
    Verb,
    decide,
)
from temporal_plans.domain.plans.plan import ParameterSpec, PlanSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import (
    StepState,
    awaiting,
)
from temporal_plans.domain.values.refusal import Code, Refusal

ID = "svc/deploy"


def two_phases(hello: str = "P P", world: str = "P") -> PlanBoard:
    """Serial: phase hello with steps hello-0:[server], …, phase world alike."""
    states = {"hello": hello.split(), "world": world.split()}
    board = board_of(
        *(
            phase_spec(name, *(f"{name}-{i}:[server]" for i in range(len(letters))))
            for name, letters in states.items()
        )
    )
    for index, letters in enumerate(states.values()):
        for i, letter in enumerate(letters):
            board.phases[index].set(i, STATES[letter])
    return board


def tell(
    board: PlanBoard,
    verb: Verb,
    phase: str = "",
    step: str = "",
    parameters: dict[str, str] | None = None,
) -> Outcome:
    """The answer, with the command carried out, and what every answer promises checked."""
    before = board.state
    command = Command(phase=phase, step=step, parameters=parameters or {})
    try:
        decision = decide(board, ID, verb, command)
    except CommandRefused as refused:
        decision = Decision(outcome=refused.outcome)
        assert http_code(decision.outcome) >= 400
        assert not decision.outcome.changed
    assert board.state == before, "deciding changed something"
    carry_out(board, decision)
    if not decision.outcome.changed:
        assert board.state == before
        assert decision.plan is None
        assert decision.orders == ()
    return decision.outcome


def shown(board: PlanBoard) -> list[list[str]]:
    return [[step.shown.value for step in phase.steps] for phase in board.phases]


# --- codes by verb, target and state --------------------------------------------------------------

CODES = {
    # verb, phase, step, hello's steps, world's steps, told before -> code, changed
    "continue-plan-complete": ("continue", "", "", "C C", "C", "", 208, False),
    "continue-plan-running": ("continue", "", "", "SG P", "P", "", 208, False),
    "continue-plan-in-progress": ("continue", "", "", "C P", "P", "", 208, False),
    "continue-plan-pending": ("continue", "", "", "P P", "P", "", 200, False),
    "continue-plan-interrupted": ("continue", "", "", "P P", "P", "interrupt", 200, True),
    "continue-plan-interrupted-working": ("continue", "", "", "SG P", "P", "interrupt", 200, True),
    "continue-plan-interrupted-complete": ("continue", "", "", "C C", "C", "stop", 200, True),
    "continue-phase-complete": ("continue", "hello", "", "C C", "P", "", 208, False),
    "continue-phase-running": ("continue", "hello", "", "SG P", "P", "", 208, False),
    "continue-phase-prepared": ("continue", "hello", "", "PR P", "P", "", 208, False),
    "continue-phase-pending": ("continue", "hello", "", "P P", "P", "", 200, False),
    "continue-phase-interrupted": (
        "continue", "hello", "", "P P", "P", "interrupt hello", 200, True,
    ),
    "continue-phase-interrupted-working": (
        "continue", "hello", "", "PR P", "P", "interrupt hello", 200, True,
    ),
    "continue-step-complete": ("continue", "hello", "0", "C P", "P", "", 208, False),
    "continue-step-that-waits-for-nobody": ("continue", "hello", "0", "P P", "P", "", 200, False),
    "interrupt-plan": ("interrupt", "", "", "P P", "P", "", 200, True),
    "interrupt-plan-working": ("interrupt", "", "", "SG P", "P", "", 200, True),
    "interrupt-plan-again": ("interrupt", "", "", "P P", "P", "interrupt", 208, False),
    "interrupt-plan-complete": ("interrupt", "", "", "C C", "C", "", 208, False),
    "interrupt-phase": ("interrupt", "hello", "", "P P", "P", "", 200, True),
    "interrupt-phase-again": ("interrupt", "hello", "", "P P", "P", "interrupt hello", 208, False),
    "interrupt-phase-complete": ("interrupt", "hello", "", "C C", "P", "", 208, False),
    "interrupt-step": ("interrupt", "hello", "0", "P P", "P", "", 400, False),
    "restart-plan-pending": ("restart", "", "", "P P", "P", "", 208, False),
    "restart-plan-working": ("restart", "", "", "C SG", "P", "", 200, True),
    "restart-plan-complete": ("restart", "", "", "C C", "C", "", 200, True),
    "restart-phase-pending": ("restart", "world", "", "C C", "P", "", 208, False),
    "restart-phase-complete": ("restart", "hello", "", "C C", "P", "", 200, True),
    "restart-step-pending": ("restart", "hello", "1", "C P", "P", "", 208, False),
    "restart-step-working": ("restart", "hello", "1", "C SG", "P", "", 200, True),
    "restart-step-complete": ("restart", "hello", "0", "C P", "P", "", 200, True),
    "restart-step-failed": ("restart", "hello", "0", "E P", "P", "", 200, True),
    "force-plan-complete": ("force_complete", "", "", "C C", "C", "", 208, False),
    "force-plan": ("force_complete", "", "", "C SG", "P", "", 200, True),
    "force-phase-complete": ("force_complete", "hello", "", "C C", "P", "", 208, False),
    "force-phase": ("force_complete", "hello", "", "P P", "P", "", 200, True),
    "force-step-complete": ("force_complete", "hello", "0", "C P", "P", "", 208, False),
    "force-step": ("force_complete", "hello", "0", "P P", "P", "", 200, True),
    "force-step-failed": ("force_complete", "hello", "0", "E P", "P", "", 200, True),
    "start-plan-pending": ("start", "", "", "P P", "P", "", 200, True),
    "start-plan-working": ("start", "", "", "C SG", "P", "", 200, True),
    "start-plan-complete": ("start", "", "", "C C", "C", "", 200, True),
    "start-phase": ("start", "hello", "", "P P", "P", "", 400, False),
    "stop-plan": ("stop", "", "", "C SG", "P", "", 200, True),
    "stop-plan-again": ("stop", "", "", "C SG", "P", "stop", 200, True),
    "stop-plan-complete": ("stop", "", "", "C C", "C", "", 200, True),
    "stop-phase": ("stop", "hello", "", "P P", "P", "", 400, False),
    "unknown-phase": ("continue", "nowhere", "", "P P", "P", "", 404, False),
    "unknown-step": ("restart", "hello", "9", "P P", "P", "", 404, False),
    "step-of-another-phase": ("restart", "world", "1", "P P", "P", "", 404, False),
    "step-without-phase": ("restart", "", "0", "P P", "P", "", 400, False),
}  # fmt: skip


@pytest.mark.parametrize(
    ("verb", "where", "which", "hello", "world", "before", "code", "changed"),
    CODES.values(),
    ids=CODES.keys(),
)
def test_codes(
    verb: str,
    where: str,
    which: str,
    hello: str,
    world: str,
    before: str,
    code: int,
    changed: bool,
) -> None:
    board = two_phases(hello, world)
    if before:
        name, _, of = before.partition(" ")
        assert http_code(tell(board, Verb(name), of)) == 200
    outcome = tell(board, Verb(verb), where, f"{where}-{which}:[server]" if which else "")
    assert (http_code(outcome), outcome.changed) == (code, changed)
    if code == 208:
        command = Command(phase=where)
        said = "Command has already been reported or completed"
        assert message("deploy", Verb(verb), command, outcome) == said


def test_an_interrupted_plan_that_is_complete_already_is_complete() -> None:
    """Behaviour 10.2: continue of a COMPLETE plan is 208; 1.6, row 39: interrupted or not."""
    board = two_phases("C C", "C")
    board.interrupted = True
    assert http_code(tell(board, Verb.CONTINUE)) == 208


# --- messages -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "where", "which", "said"),
    [
        ("interrupt", "", "", "Received cmd: interrupt"),
        ("interrupt", "hello", "", "Received cmd: interrupt"),
        ("stop", "", "", "Received cmd: stop"),
        ("start", "", "", "Received cmd: start deploy with parameters: {}"),
        (
            "restart",
            "hello",
            "",
            "Received cmd: restart for Plan: deploy, Phase: hello, Step: null",
        ),
        (
            "force_complete",
            "",
            "",
            "Received cmd: forceComplete for Plan: deploy, Phase: null, Step: null",
        ),
        (
            "restart",
            "hello",
            "hello-0:[server]",
            "Received cmd: restart for Plan: deploy, Phase: hello, Step: hello-0:[server]",
        ),
    ],
)
def test_messages_of_the_dialect(verb: str, where: str, which: str, said: str) -> None:
    outcome = tell(two_phases("SG P"), Verb(verb), where, which)
    command = Command(phase=where, step=which)
    assert message("deploy", Verb(verb), command, outcome) == said


@pytest.mark.parametrize(
    ("verb", "where", "which", "said"),
    [
        ("interrupt", "", "", "plan deploy is interrupted"),
        ("interrupt", "hello", "", "phase hello is interrupted"),
        ("stop", "", "", "plan deploy is stopped"),
        ("start", "", "", "plan deploy is started"),
        ("restart", "hello", "", "phase hello restarts"),
        ("force_complete", "", "", "plan deploy is forced to complete"),
        (
            "force_complete",
            "hello",
            "hello-0:[server]",
            "step hello-0:[server] of phase hello is forced to complete",
        ),
        ("restart", "world", "", "nothing to do: phase world is PENDING"),
    ],
)
def test_messages_name_the_element(verb: str, where: str, which: str, said: str) -> None:
    assert tell(two_phases("SG P"), Verb(verb), where, which).message == said


def test_every_result_and_code_of_ours_has_an_http_code() -> None:
    assert set(RESULTS) == set(Result)
    assert set(REFUSALS) == set(Code)
    own = Outcome.refusing(Refusal.of("house-rule", "not on Fridays"))
    assert (http_code(own), own.message) == (409, "not on Fridays")


def test_continue_says_so() -> None:
    board = two_phases()
    tell(board, Verb.INTERRUPT)
    assert tell(board, Verb.CONTINUE).message == "plan deploy continues"


# --- addressing -----------------------------------------------------------------------------------


def test_elements_are_found_by_name_and_by_id() -> None:
    for where in ("hello", element_id(ID, "hello")):
        for which in ("hello-1:[server]", element_id(ID, "hello", "hello-1:[server]")):
            board = two_phases()
            assert http_code(tell(board, Verb.FORCE_COMPLETE, where, which)) == 200
            assert shown(board) == [["PENDING", "COMPLETE"], ["PENDING"]]


def test_ids_differ_by_plan_and_place_and_stay() -> None:
    ids = [
        element_id(ID, "hello"),
        element_id("svc/other", "hello"),
        element_id(ID, "hello", "a"),
        element_id(ID, "world", "a"),
    ]
    assert len(set(ids)) == 4
    assert ids[0] == element_id(ID, "hello")


def test_a_name_that_looks_like_an_id_is_found() -> None:
    name = "4b0dc6f4-3f0f-4d1a-9d3c-0c0c0c0c0c0c"
    assert http_code(tell(board_of(phase_spec(name, "a")), Verb.FORCE_COMPLETE, name)) == 200


def test_blank_names_are_absent_and_spaces_around_names_are_dropped() -> None:
    board = two_phases()
    assert http_code(tell(board, Verb.INTERRUPT, "  ", " ")) == 200
    assert board.interrupted
    assert http_code(tell(board, Verb.INTERRUPT, " hello ")) == 200
    assert board.phases[0].interrupted


@pytest.mark.parametrize(
    ("where", "which", "message"),
    [
        ("helo", "", "phase helo not found; did you mean hello?"),
        ("xyz", "", "phase xyz not found; use one of: hello, world"),
        (
            "world",
            "world-0:[serve]",
            "step world-0:[serve] not found; did you mean world-0:[server]?",
        ),
        ("", "a", "step a was named without its phase; name both"),
    ],
)
def test_a_mistyped_name_is_told_the_right_ones(where: str, which: str, message: str) -> None:
    assert tell(two_phases(), Verb.RESTART, where, which).message == message


def test_an_ambiguous_name_is_refused_and_its_id_works() -> None:
    board = board_of(phase_spec("p", "same", "same"))
    outcome = tell(board, Verb.FORCE_COMPLETE, "p", "same")
    assert (http_code(outcome), "not unique" in outcome.message) == (409, True)


def test_parameters_belong_to_start() -> None:
    outcome = tell(two_phases(), Verb.RESTART, parameters={"N": "1"})
    assert (http_code(outcome), "start" in outcome.message) == (400, True)


# --- what they do ---------------------------------------------------------------------------------


def test_start_begins_a_complete_plan_again_and_leaves_a_working_one() -> None:
    board = two_phases("C C", "C")
    assert http_code(tell(board, Verb.START)) == 200
    assert shown(board) == [["PENDING", "PENDING"], ["PENDING"]]
    board = two_phases("C SG", "P")
    tell(board, Verb.START)
    assert shown(board) == [["COMPLETE", "STARTING"], ["PENDING"]]


def test_stop_interrupts_and_begins_again_from_pending() -> None:
    board = two_phases("C SG", "P")
    tell(board, Verb.STOP)
    assert shown(board) == [["PENDING", "PENDING"], ["PENDING"]]
    assert (board.status, board.interrupted) == (Status.WAITING, True)
    tell(board, Verb.START)
    assert (board.status, board.interrupted) == (Status.PENDING, False)


def test_start_carries_parameters() -> None:
    board = PlanBoard(
        PlanSpec(
            name="backup",
            parameters=(
                ParameterSpec(name="TARGET", required=True),
                ParameterSpec(name="DEPTH", default="1", pattern="[0-9]+"),
            ),
            phases=(phase_spec("p", "a"),),
        )
    )
    decision = decide(board, ID, Verb.START, Command(parameters={"TARGET": "s3"}))
    assert decision.arguments == {"TARGET": "s3", "DEPTH": "1"}
    assert "TARGET=s3" in decision.outcome.message
    for given, field in (({}, "TARGET"), ({"TARGET": "a", "DEPTH": "deep"}, "DEPTH")):
        refused = tell(board, Verb.START, parameters=given)
        assert (http_code(refused), field in refused.message) == (400, True)
    assert http_code(tell(board, Verb.START, parameters={"TARGET": "a", "TYPO": "b"})) == 400


@pytest.mark.parametrize("verb", [Verb.CONTINUE, Verb.RESTART])
def test_a_plan_that_was_never_started_begins_with_what_it_needs(verb: Verb) -> None:
    """A plan that waits to be started is interrupted, and has no values for its parameters."""
    spec = PlanSpec(
        name="backup",
        parameters=(
            ParameterSpec(name="TARGET", required=True),
            ParameterSpec(name="DEPTH", default="1"),
        ),
        phases=(phase_spec("p", "a"),),
    )
    board = PlanBoard(spec)
    board.interrupted = True
    with pytest.raises(CommandRefused, match="TARGET"):
        decide(board, ID, verb, Command(), arguments={})
    decision = decide(board, ID, verb, Command(), arguments={"TARGET": "s3"})
    assert decision.plan is OrderVerb.PROCEED
    assert decision.arguments == {"TARGET": "s3", "DEPTH": "1"}
    started = {"TARGET": "s3", "DEPTH": "2"}
    assert decide(board, ID, verb, Command(), arguments=started).arguments is None
    board.interrupted = False
    assert decide(board, ID, Verb.RESTART, Command(), arguments={}).arguments is None


def test_undeclared_parameters_must_be_names_of_variables() -> None:
    board = two_phases()
    assert http_code(tell(board, Verb.START, parameters={"N": "5"})) == 200
    refused = tell(board, Verb.START, parameters={"not a name": "5"})
    assert (http_code(refused), "not a name" in refused.message) == (400, True)


def test_a_restart_of_an_interrupted_plan_lets_it_proceed() -> None:
    board = two_phases("C SG", "P")
    tell(board, Verb.INTERRUPT)
    tell(board, Verb.RESTART)
    assert (board.status, board.interrupted) == (Status.PENDING, False)


def test_a_restart_of_an_interrupted_phase_lets_it_proceed() -> None:
    board = two_phases("C SG", "P")
    tell(board, Verb.INTERRUPT, "hello")
    tell(board, Verb.RESTART, "hello")
    assert shown(board) == [["PENDING", "PENDING"], ["PENDING"]]
    assert not board.phases[0].interrupted


def test_a_restart_of_the_plan_leaves_interrupts_of_its_phases() -> None:
    board = two_phases("C SG", "P")
    tell(board, Verb.INTERRUPT, "world")
    tell(board, Verb.RESTART)
    assert board.phases[1].interrupted


def test_a_faulty_step_is_not_restarted_but_may_be_forced() -> None:
    board = board_of(phase_spec("p", step_spec("a", errors=("one resource set, two tasks",)), "b"))
    refused = tell(board, Verb.RESTART, "p", "a")
    assert (http_code(refused), "one resource set, two tasks" in refused.message) == (409, True)
    assert (board.status, board.errors) == (
        Status.ERROR,
        ("p: a: one resource set, two tasks",),
    )
    assert http_code(tell(board, Verb.FORCE_COMPLETE, "p", "a")) == 200
    assert (board.errors, board.candidates(), board.phases[0].candidates()) == ((), [0], [1])
    assert http_code(tell(board, Verb.RESTART, "p", "a")) == 409  # the error is not gone


def test_a_restart_of_the_phase_keeps_a_faulty_step_in_error() -> None:
    board = board_of(phase_spec("p", step_spec("a", errors=("faulty",)), "b"))
    tell(board, Verb.FORCE_COMPLETE)
    assert board.complete
    tell(board, Verb.RESTART, "p")
    assert shown(board) == [["ERROR", "PENDING"]]
    assert board.errors == ("p: a: faulty",)


def test_force_completes_what_has_not_begun() -> None:
    board = two_phases("C SG", "P")
    tell(board, Verb.FORCE_COMPLETE)
    assert board.complete
    assert [s.forced for p in board.phases for s in p.steps] == [False, True, True]


def test_force_completes_an_interrupted_plan() -> None:
    board = two_phases()
    tell(board, Verb.INTERRUPT)
    tell(board, Verb.INTERRUPT, "hello")
    tell(board, Verb.FORCE_COMPLETE)
    assert (board.status, board.waits()) == (Status.COMPLETE, ())


# --- canaries (10.2, 2.6) -------------------------------------------------------------------------


def canary() -> PlanBoard:
    return board_of(phase_spec("web", "a", "b", "c", strategy="canary"))


def test_continue_of_the_plan_that_changes_nothing_names_what_waits() -> None:
    outcome = tell(canary(), Verb.CONTINUE)
    assert (http_code(outcome), outcome.changed) == (200, False)
    assert outcome.waiting == ("phase web waits at the canary gate before a",)
    assert outcome.waiting[0] in outcome.message


@pytest.mark.parametrize("of_the_plan", [False, True], ids=["phase", "plan"])
def test_an_interrupt_at_a_canary_gate_takes_effect_and_the_gate_stays(of_the_plan: bool) -> None:
    """Design 8: an interrupt always interrupts; behaviour 10.2 answers 208 here."""
    where = "" if of_the_plan else "web"
    if of_the_plan:
        board = board_of(phase_spec("web", "a"), phase_spec("db", "b"), strategy="canary")
    else:
        board = canary()
    element = board if of_the_plan else board.phases[0]
    gate = element.closed_gate
    assert gate == 0
    assert http_code(tell(board, Verb.INTERRUPT, where)) == 200
    assert http_code(tell(board, Verb.INTERRUPT, where)) == 208
    assert http_code(tell(board, Verb.CONTINUE, where)) == 200
    assert (element.interrupted, element.closed_gate) == (False, gate)
    assert http_code(tell(board, Verb.CONTINUE, where)) == 200
    assert element.closed_gate != gate


def test_a_phase_at_a_gate_of_the_plan_can_be_interrupted_too() -> None:
    board = board_of(phase_spec("web", "a"), phase_spec("db", "b"), strategy="canary")
    assert http_code(tell(board, Verb.INTERRUPT, "web")) == 200
    tell(board, Verb.CONTINUE, "web")
    web = board.phases[0]
    assert (web.interrupted, web.gate) == (False, True)


def test_continue_of_a_canary_phase() -> None:
    board = canary()
    web = board.phases[0]
    assert http_code(tell(board, Verb.CONTINUE, "web")) == 200
    web.set(0, STATES["PR"])
    assert http_code(tell(board, Verb.CONTINUE, "web")) == 208  # IN_PROGRESS
    web.set(0, STATES["SG"])
    assert (
        http_code(decide(board, ID, Verb.CONTINUE, Command(phase="web")).outcome) == 200
    )  # WAITING
    web.set(0, STATES["C"])
    assert http_code(tell(board, Verb.CONTINUE, "web")) == 200
    assert (web.candidates(), web.closed_gate) == ([1], None)


def test_continue_of_one_canary_step_opens_its_gate() -> None:
    board = canary()
    assert http_code(tell(board, Verb.CONTINUE, "web", "b")) == 200
    assert board.phases[0].candidates() == [1]


# --- approvals ------------------------------------------------------------------------------------


def with_approval(strategy: str = "serial") -> PlanBoard:
    board = board_of(phase_spec("p", step_spec("ask", ApprovalWork()), "b", strategy=strategy))
    board.phases[0].set(0, awaiting(StepState(), "ask the owner", NOW))
    return board


@pytest.mark.parametrize("which", ["", "ask"], ids=["by-its-phase", "by-name"])
def test_a_continue_approves(which: str) -> None:
    board = with_approval()
    assert (board.status, board.waits()) == (
        Status.WAITING,
        ("phase p waits for approval of ask",),
    )
    assert http_code(tell(board, Verb.CONTINUE, "p", which)) == 200
    assert (shown(board), board.phases[0].candidates()) == ([["COMPLETE", "PENDING"]], [1])


def test_a_continue_of_the_plan_names_the_approval() -> None:
    outcome = tell(with_approval(), Verb.CONTINUE)
    assert (outcome.changed, outcome.waiting) == (False, ("phase p waits for approval of ask",))


@pytest.mark.parametrize("letter", ["PR", "C", "SG"])
def test_an_approval_beside_running_steps_is_given_by_its_phase(letter: str) -> None:
    board = with_approval("parallel")
    board.phases[0].set(1, STATES[letter])
    assert http_code(tell(board, Verb.CONTINUE, "p")) == 200
    assert board.phases[0].steps[0].complete


def test_an_approval_that_was_not_reached_is_not_given() -> None:
    board = board_of(phase_spec("p", "a", step_spec("ask", ApprovalWork())))
    assert not tell(board, Verb.CONTINUE, "p").changed
    assert not tell(board, Verb.CONTINUE, "p", "ask").changed


def test_a_restarted_approval_is_asked_for_again() -> None:
    board = with_approval()
    tell(board, Verb.CONTINUE, "p")
    assert http_code(tell(board, Verb.RESTART, "p", "ask")) == 200
    assert (shown(board), board.phases[0].candidates()) == ([["PENDING", "PENDING"]], [0])


def test_an_interrupt_is_lifted_before_the_approval_is_given() -> None:
    board = with_approval()
    assert http_code(tell(board, Verb.INTERRUPT, "p")) == 200
    tell(board, Verb.CONTINUE, "p")
    assert shown(board) == [["WAITING", "PENDING"]]
    tell(board, Verb.CONTINUE, "p")
    assert shown(board) == [["COMPLETE", "PENDING"]]


# --- bounds ---------------------------------------------------------------------------------------

BOUNDS = {
    "reason": ("reason", "x" * 500, "x" * 501),
    "by": ("by", "x" * 200, "x" * 201),
    "phase": ("phase", "x" * 1000, "x" * 1001),
    "step": ("step", "x" * 1000, "x" * 1001),
    "parameters": (
        "parameters",
        {f"P{i}": "" for i in range(100)},
        {f"P{i}": "" for i in range(101)},
    ),
    "parameter-name": ("parameters", {"x" * 200: ""}, {"x" * 201: ""}),
    "parameter-value": ("parameters", {"P": "x" * 10_000}, {"P": "x" * 10_001}),
}


@pytest.mark.parametrize(("field", "good", "bad"), BOUNDS.values(), ids=BOUNDS.keys())
def test_a_command_has_bounds(field: str, good: object, bad: object) -> None:
    Command.model_validate({field: good})
    with pytest.raises(ValidationError) as raised:
        Command.model_validate({field: bad})
    assert raised.value.errors()[0]["loc"][0] == field
