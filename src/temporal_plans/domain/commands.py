"""What operators say to a plan, and what that does (reference 10.2, DESIGN 5 and 8).

A command is decided from the plan's board into a ``Decision``: its outcome in words and as the
HTTP dialect's code, a change of the plan itself, and orders to phases. Orders are applied by
whoever owns the phase's board: the Plan while the phase does not run, else the Phase workflow.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import Field

from temporal_plans.domain.board import PhaseBoard, PlanBoard, element_id
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.parameters import check_arguments
from temporal_plans.domain.status import Status
from temporal_plans.domain.transitions import StepState, completed, forced, restarted


class Verb(StrEnum):
    """The commands, by the names of their signals and updates."""

    START = "start"
    STOP = "stop"
    CONTINUE = "continue"
    INTERRUPT = "interrupt"
    RESTART = "restart"
    FORCE_COMPLETE = "force_complete"


_ParameterName = Annotated[str, Field(max_length=200)]
_ParameterValue = Annotated[str, Field(max_length=10_000)]


class Command(CompactValue):
    """What all commands carry. ``phase`` and ``step`` by name or id; ``parameters`` with start.

    Its texts are bounded: they are kept in the log, which is carried from run to run.
    """

    phase: str = Field(default="", max_length=1000)
    step: str = Field(default="", max_length=1000)
    parameters: dict[_ParameterName, _ParameterValue] = Field(default={}, max_length=100)
    reason: str = Field(default="", max_length=500)
    by: str = Field(default="", max_length=200)


class Outcome(CompactValue):
    """What a command did. ``code``: 200 done, 202 taken, 208 already so, 400, 404, 409 refused.

    ``changed`` is false when nothing was changed; ``waiting`` names what waits for an operator.
    """

    code: int
    message: str
    changed: bool = True
    waiting: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        return self.code >= 400


class CommandRefused(Exception):
    """The command can't be carried out; the message says why and what would be right."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.outcome = Outcome(code=code, message=message, changed=False)


class OrderVerb(StrEnum):
    """What an order does to a phase or one of its steps."""

    PROCEED = "proceed"
    INTERRUPT = "interrupt"
    RESTART = "restart"
    FORCE = "force"


class Order(CompactValue):
    """An instruction to one phase, or to its step of that index."""

    phase: int
    verb: OrderVerb
    step: int | None = None


class Decision(CompactValue):
    """What a command comes to. ``plan`` changes the plan's own flag or gates."""

    outcome: Outcome
    plan: OrderVerb | None = None
    orders: tuple[Order, ...] = ()
    arguments: dict[str, str] | None = None


_ALREADY = "Command has already been reported or completed"


def decide(
    board: PlanBoard,
    plan_id: str,
    verb: Verb,
    command: Command,
    *,
    arguments: Mapping[str, str] | None = None,
) -> Decision:
    """What a command does to this plan now. Raises CommandRefused.

    ``arguments`` are the values that its parameters have, empty before it was started. A command
    that has it begin all the same takes the defaults, and is refused where one is needed.
    """
    decision = _decided(board, plan_id, verb, command)
    if arguments is None or verb is Verb.START or decision.plan is not OrderVerb.PROCEED:
        return decision
    values, problems = check_arguments(board.spec.parameters, arguments)
    if problems:
        needed = "; ".join(str(problem) for problem in problems)
        raise CommandRefused(
            409,
            f"the plan was never started, and {verb} gives it no parameters: {needed}; start it",
        )
    return decision.but(arguments=values) if values != dict(arguments) else decision


def _decided(board: PlanBoard, plan_id: str, verb: Verb, command: Command) -> Decision:
    phase, step = find_element(board.spec.phases, plan_id, command.phase, command.step)
    if verb in (Verb.START, Verb.STOP):
        if phase is not None:
            raise CommandRefused(400, f"{verb} is for a whole plan; leave phase and step out")
        return _start(board, plan_id, command) if verb is Verb.START else _stop(board)
    if command.parameters:
        raise CommandRefused(400, f"{verb} takes no parameters; they belong to start")
    if verb is Verb.CONTINUE:
        return _continue(board, phase, step)
    if verb is Verb.INTERRUPT:
        return _interrupt(board, phase, step)
    return _redo(board, verb, phase, step)


def apply_plan(board: PlanBoard, decision: Decision) -> None:
    """The part of a decision that is the plan's own."""
    if decision.plan is OrderVerb.FORCE:
        board.faults = ()
    elif decision.plan is OrderVerb.INTERRUPT:
        board.interrupted = True
    elif decision.plan is OrderVerb.PROCEED:
        if board.interrupted:
            board.interrupted = False
        elif (index := board.closed_gate) is not None:
            board.phases[index].set_gate(False)


def apply_order(board: PhaseBoard, order: Order, now: datetime) -> list[int]:
    """Carry an order out on a phase's board; the indexes of the steps that it changed."""
    if order.step is not None:
        changed = _order_step(board.steps[order.step], board, order, now)
        return [order.step] if board.set(order.step, changed) else []
    if order.verb is OrderVerb.INTERRUPT:
        board.set_interrupted(True)
        return []
    if order.verb is OrderVerb.PROCEED:
        return _proceed(board, now)
    if order.verb is OrderVerb.RESTART:
        return [i for i, s in enumerate(board.steps) if board.set(i, _again(s))]
    board.set_gate(False)
    return [i for i, s in enumerate(board.steps) if not s.complete and board.set(i, forced(s, now))]


def _order_step(state: StepState, board: PhaseBoard, order: Order, now: datetime) -> StepState:
    if order.verb is OrderVerb.RESTART:
        return restarted(state)
    if order.verb is OrderVerb.FORCE:
        return state if state.complete else forced(state, now)
    if order.verb is OrderVerb.PROCEED and order.step in board.approvals():
        return completed(state.but(interrupted=False), now)
    return state.but(interrupted=False)


def _again(state: StepState) -> StepState:
    """Restarted as part of its phase: a closed gate stays closed."""
    return restarted(state).but(interrupted=state.interrupted and state.attempt == 0)


def _proceed(board: PhaseBoard, now: datetime) -> list[int]:
    """Lift the interrupt, else open the plan's gate, else approve, else open the next gate.

    An approval that waits is before the gate that is still closed: only opened ones are at work.
    """
    if board.interrupted:
        board.set_interrupted(False)
        return []
    if board.gate:
        board.set_gate(False)
        return []
    if approvals := board.approvals():
        first = approvals[0]
        board.set(first, completed(board.steps[first].but(interrupted=False), now))
        return [first]
    if (index := board.closed_gate) is not None:
        board.set(index, board.steps[index].but(interrupted=False))
        return [index]
    return []


# --- the verbs --------------------------------------------------------------------------------


def _start(board: PlanBoard, plan_id: str, command: Command) -> Decision:
    arguments, problems = check_arguments(board.spec.parameters, command.parameters)
    if problems:
        raise CommandRefused(400, "; ".join(str(problem) for problem in problems))
    given = ", ".join(f"{key}={value}" for key, value in command.parameters.items())
    orders: tuple[Order, ...] = ()
    if board.complete and not board.standing:  # what a standing plan has done is over
        orders = _everywhere(board, OrderVerb.RESTART)
    return Decision(
        outcome=Outcome(
            code=200,
            message=f"Received cmd: start {board.spec.name} with parameters: {{{given}}}",
        ),
        plan=OrderVerb.PROCEED if board.interrupted else None,
        orders=orders,
        arguments=arguments,
    )


def _stop(board: PlanBoard) -> Decision:
    return Decision(
        outcome=Outcome(code=200, message="Received cmd: stop"),
        plan=OrderVerb.INTERRUPT,
        orders=_everywhere(board, OrderVerb.RESTART, begun_only=True),
    )


def _continue(board: PlanBoard, phase: int | None, step: int | None) -> Decision:
    if phase is None:
        return _continue_plan(board)
    target = board.phases[phase]
    if step is not None:
        return _continue_step(board, phase, step)
    if target.complete or (target.status.running and not target.approvals()):
        return _already(board)
    if not (target.interrupted or target.gate or target.closed_gate is not None) and (
        not target.approvals()
    ):
        return _nothing(board, f"phase {target.spec.name} waits for nothing")
    return _done(board, "continue", Order(phase=phase, verb=OrderVerb.PROCEED))


def _continue_plan(board: PlanBoard) -> Decision:
    status = board.status
    held = board.standing and board.interrupted  # whatever comes next is, too
    if status.running or (status is Status.COMPLETE and not held):
        return _already(board)
    if not board.interrupted and board.closed_gate is None:
        return _nothing(board, "the plan itself is not interrupted")
    return Decision(
        outcome=Outcome(code=200, message="Received cmd: continue"), plan=OrderVerb.PROCEED
    )


def _continue_step(board: PlanBoard, phase: int, step: int) -> Decision:
    state = board.phases[phase].steps[step]
    if state.complete:
        return _already(board)
    if state.shown is not Status.WAITING:
        name = board.phases[phase].spec.steps[step].name
        return _nothing(board, f"step {name} is {state.shown} and waits for nobody")
    return _done(board, "continue", Order(phase=phase, step=step, verb=OrderVerb.PROCEED))


def _interrupt(board: PlanBoard, phase: int | None, step: int | None) -> Decision:
    """Only who was interrupted by somebody is so already: what stops at a canary gate takes the
    interrupt, and the next continue lifts it before it opens the gate (DESIGN 8)."""
    if step is not None:
        raise CommandRefused(400, "a step can't be interrupted; interrupt its phase or the plan")
    if phase is None:
        if board.interrupted or (board.complete and not board.standing):
            return _already(board)
        return Decision(
            outcome=Outcome(code=200, message="Received cmd: interrupt"), plan=OrderVerb.INTERRUPT
        )
    target = board.phases[phase]
    if target.interrupted or target.complete:
        return _already(board)
    return _done(board, "interrupt", Order(phase=phase, verb=OrderVerb.INTERRUPT))


def _redo(board: PlanBoard, verb: Verb, phase: int | None, step: int | None) -> Decision:
    """restart and force_complete, of a plan, a phase or a step."""
    status, errors = _status_of(board, phase, step)
    restart = verb is Verb.RESTART
    if status is (Status.PENDING if restart else Status.COMPLETE):
        return _already(board)
    if restart and step is not None and errors:
        raise CommandRefused(
            409,
            f"the step can't be restarted: {'; '.join(errors)}. Mend the plan and deploy it again,"
            " or force the step to complete",
        )
    order = OrderVerb.RESTART if restart else OrderVerb.FORCE
    phase_name = None if phase is None else board.phases[phase].spec.name
    step_name = None if phase is None or step is None else board.phases[phase].spec.steps[step].name
    name = "restart" if restart else "forceComplete"
    text = (
        f"Received cmd: {name} for Plan: {board.spec.name}, "
        f"Phase: {phase_name or 'null'}, Step: {step_name or 'null'}"
    )
    if phase is None:
        orders = _everywhere(board, order)
    elif restart and step is None:  # restarting a phase lets it proceed once (reference 10.2)
        orders = (Order(phase=phase, verb=OrderVerb.PROCEED), Order(phase=phase, verb=order))
    else:
        orders = (Order(phase=phase, step=step, verb=order),)
    return Decision(
        outcome=Outcome(code=200, message=text),
        plan=_own(board, restart=restart) if phase is None else None,
        orders=orders,
    )


def _own(board: PlanBoard, *, restart: bool) -> OrderVerb | None:
    """What restart and force_complete of a whole plan do to the plan itself."""
    if not restart:
        return OrderVerb.FORCE
    return OrderVerb.PROCEED if board.interrupted or board.closed_gate is not None else None


def _status_of(
    board: PlanBoard, phase: int | None, step: int | None
) -> tuple[Status, tuple[str, ...]]:
    if phase is None:
        return board.status, ()
    if step is None:
        return board.phases[phase].status, ()
    state = board.phases[phase].steps[step]
    return state.shown, state.errors


def _everywhere(
    board: PlanBoard, verb: OrderVerb, *, begun_only: bool = False
) -> tuple[Order, ...]:
    return tuple(
        Order(phase=i, verb=verb)
        for i, phase in enumerate(board.phases)
        if not begun_only or any(step != StepState() for step in phase.steps)
    )


def _done(board: PlanBoard, name: str, order: Order) -> Decision:
    return Decision(outcome=Outcome(code=200, message=f"Received cmd: {name}"), orders=(order,))


def _already(board: PlanBoard) -> Decision:
    return Decision(
        outcome=Outcome(code=208, message=_ALREADY, changed=False, waiting=board.waits())
    )


def _nothing(board: PlanBoard, why: str) -> Decision:
    waiting = board.waits()
    said = f"; {'; '.join(waiting)}" if waiting else ""
    return Decision(
        outcome=Outcome(
            code=200, message=f"Nothing changed: {why}{said}", changed=False, waiting=waiting
        )
    )


# --- addressing (reference 10.2) ----------------------------------------------------------------


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Phase(_Named, Protocol):
    @property
    def steps(self) -> Sequence[_Named]: ...


def find_element(
    phases: Sequence[_Phase], plan_id: str, phase_text: str, step_text: str
) -> tuple[int | None, int | None]:
    """Indexes of the phase and step of these names or ids; None for a blank one.

    Raises CommandRefused: 400 for a step without its phase, 404 with the close names, 409.
    """
    phase_text, step_text = phase_text.strip(), step_text.strip()
    if not phase_text:
        if step_text:
            raise CommandRefused(400, f"Missing phase: step {step_text} needs its phase's name")
        return None, None
    phase = _find("Phase", phase_text, [(p.name, element_id(plan_id, p.name)) for p in phases])
    if not step_text:
        return phase, None
    name = phases[phase].name
    step = _find(
        "Step",
        step_text,
        [(s.name, element_id(plan_id, name, s.name)) for s in phases[phase].steps],
    )
    return phase, step


def _find(what: str, text: str, elements: Iterable[tuple[str, str]]) -> int:
    """The index of the one element of that name or id."""
    pairs = list(elements)
    found = [i for i, pair in enumerate(pairs) if text in pair]
    if len(found) == 1:
        return found[0]
    names = [name for name, _ in pairs]
    if found:
        raise CommandRefused(409, f"{what} {text} is not unique; use one of the ids")
    raise CommandRefused(404, f"{what} {text} not found{suggest(text, names)}")


def suggest(text: str, names: list[str]) -> str:
    """The close names to a mistyped one, else the first few of all, as the end of a sentence."""
    if close := get_close_matches(text, names, n=3, cutoff=0.5):
        return f"; did you mean {' or '.join(close)}?"
    if not names:
        return "; there are none"
    shown = ", ".join(names[:10])
    return f"; there are: {shown}" + (f" and {len(names) - 10} more" if len(names) > 10 else "")
