"""The commands of operators to a plan, and their effects (behaviour 10.2, design 5 and 8).

``decide`` turns a command into a ``Decision``: its outcome, a change of the plan itself, and orders
to phases. The owner of a phase's board applies its orders: the Plan while the phase does not run,
else the Phase workflow.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Protocol, Self, assert_never

from pydantic import Field

from temporal_plans.domain.plans.board import PhaseBoard, PlanBoard, element_id
from temporal_plans.domain.plans.parameters import check_arguments
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState, completed, forced, restarted
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.names import suggestion
from temporal_plans.domain.values.refusal import Code, Refusal, RefusedError


class Verb(StrEnum):
    """The commands, by the names of their signals and updates."""

    START = "start"
    STOP = "stop"
    CONTINUE = "continue"
    INTERRUPT = "interrupt"
    RESTART = "restart"
    FORCE_COMPLETE = "force_complete"

    @property
    def begins_a_run(self) -> bool:
        """Whether the command starts a new run of a plan that has ended."""
        return self in (Verb.START, Verb.RESTART)

    @property
    def lets_work_begin(self) -> bool:
        """Whether the command may let work of the plan begin."""
        return self not in (Verb.STOP, Verb.INTERRUPT)


def verb_of(text: str) -> Verb | None:
    """Return the command that a log entry names; None when it is no command to a plan."""
    return Verb(text) if text in Verb.__members__.values() else None


_ParameterName = Annotated[str, Field(max_length=200)]
_ParameterValue = Annotated[str, Field(max_length=10_000)]


class Command(CompactValue):
    """The arguments of all commands. ``phase`` and ``step`` by name or id; ``parameters`` with
    start. ``force``: restart or stop a plan that is not reentrant. By ``mark``, a sender finds its
    own command in the log.

    Its texts are bounded: they are kept in the log, which is carried from run to run.
    """

    phase: str = Field(default="", max_length=1000)
    step: str = Field(default="", max_length=1000)
    parameters: dict[_ParameterName, _ParameterValue] = Field(default={}, max_length=100)
    force: bool = False
    reason: str = Field(default="", max_length=500)
    by: str = Field(default="", max_length=200)
    mark: str = Field(default="", max_length=200)


class Result(StrEnum):
    """The result of a command. ``UNDER_WAY``: accepted, and not carried out yet; ``ALREADY``: the
    element was in that state before; ``NOTHING``: there was nothing to change."""

    DONE = "done"
    UNDER_WAY = "under-way"
    ALREADY = "already"
    NOTHING = "nothing"
    REFUSED = "refused"


class Outcome(CompactValue):
    """The outcome of a command, with a message for users. ``waiting`` lists what waits for an
    operator; ``refusal`` is set when the command was refused."""

    result: Result
    message: str
    waiting: tuple[str, ...] = ()
    refusal: Refusal | None = None

    @classmethod
    def refusing(cls, refusal: Refusal) -> Self:
        return cls(result=Result.REFUSED, message=str(refusal), refusal=refusal)

    @property
    def changed(self) -> bool:
        return self.result in (Result.DONE, Result.UNDER_WAY)

    @property
    def refused(self) -> bool:
        return self.result is Result.REFUSED


class CommandRefused(RefusedError):
    """The command can't be carried out; the reason has the problem and the fix."""

    def __init__(self, code: Code, problem: str, fix: str = "") -> None:
        super().__init__(Refusal.of(code, problem, fix=fix))

    @property
    def outcome(self) -> Outcome:
        return Outcome.refusing(self.refusal)


class OrderVerb(StrEnum):
    """What an order does to a phase or one of its steps."""

    PROCEED = "proceed"
    INTERRUPT = "interrupt"
    RESTART = "restart"
    FORCE = "force"
    HALT = "halt"


class Order(CompactValue):
    """An instruction to one phase, or to its step of that index. HALT is for a whole phase, and has
    a ``reason``."""

    phase: int
    verb: OrderVerb
    step: int | None = None
    reason: str = ""


class Decision(CompactValue):
    """The effects of a command. ``plan`` changes the plan's own flag or gates."""

    outcome: Outcome
    plan: OrderVerb | None = None
    orders: tuple[Order, ...] = ()
    arguments: dict[str, str] | None = None


def decide(
    board: PlanBoard,
    plan_id: str,
    verb: Verb,
    command: Command,
    *,
    arguments: Mapping[str, str] | None = None,
) -> Decision:
    """Decide what a command does to this plan now. Raises CommandRefused.

    ``arguments`` are the values of its parameters, empty before it was started. Another command
    that lets it begin takes the defaults, and is refused where a required value has none.
    """
    decision = _decided(board, plan_id, verb, command)
    if arguments is None or verb is Verb.START or decision.plan is not OrderVerb.PROCEED:
        return decision
    values, problems = check_arguments(board.spec.parameters, arguments)
    if problems:
        needed = "; ".join(str(problem) for problem in problems)
        raise CommandRefused(
            Code.PARAMETERS_MISSING,
            f"the plan was never started, and {verb} gives it no parameters: {needed}",
            fix="use start, with parameters",
        )
    return decision.but(arguments=values) if values != dict(arguments) else decision


def _decided(board: PlanBoard, plan_id: str, verb: Verb, command: Command) -> Decision:
    phase, step = find_element(board.spec.phases, plan_id, command.phase, command.step)
    refuse_parameters(verb, command)
    _refuse_reentry(board, verb, phase, command)
    match verb:
        case Verb.START:
            return _start(board, _whole_plan(verb, phase, command))
        case Verb.STOP:
            _whole_plan(verb, phase, command)
            return _stop(board)
        case Verb.CONTINUE:
            return _continue(board, phase, step)
        case Verb.INTERRUPT:
            return _interrupt(board, phase, step)
        case Verb.RESTART | Verb.FORCE_COMPLETE:
            return _restart_or_force(board, verb, phase, step)
        case _:
            assert_never(verb)


def refuse_parameters(verb: Verb, command: Command) -> None:
    """Raise CommandRefused for parameters of a command that takes none."""
    if command.parameters and verb is not Verb.START:
        raise CommandRefused(
            Code.NOT_APPLICABLE, f"{verb} takes no parameters", fix="give parameters to start"
        )


def _refuse_reentry(board: PlanBoard, verb: Verb, phase: int | None, command: Command) -> None:
    """Raise CommandRefused for a restart or a stop of a plan that is not reentrant, once a step of
    it has begun. A complete plan may be repeated as a whole."""
    if verb not in (Verb.RESTART, Verb.STOP):
        if command.force:
            text = f"{verb} can't be forced"
            raise CommandRefused(Code.NOT_APPLICABLE, text, fix="leave force out")
        return
    repeats = phase is None and board.complete
    if board.spec.reentrant or command.force or repeats or not board.may_have_begun:
        return
    raise CommandRefused(
        Code.NOT_REENTRANT,
        f"plan {board.spec.name} is not reentrant and has begun, so {verb} is refused",
        fix="let it end, or force the command (--force)",
    )


def _whole_plan(verb: Verb, phase: int | None, command: Command) -> Command:
    """Return the command, if it is for the whole plan. Raises CommandRefused."""
    if phase is not None:
        raise CommandRefused(
            Code.NOT_APPLICABLE, f"{verb} is for a whole plan", fix="leave phase and step out"
        )
    return command


def apply_plan(board: PlanBoard, decision: Decision) -> None:
    """Apply the part of a decision that concerns the plan itself."""
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
    """Apply an order to a phase's board; return the indexes of the steps that it changed."""
    if order.step is not None:
        changed = _order_step(board.steps[order.step], board, order, now)
        return [order.step] if board.set(order.step, changed) else []
    if order.verb is OrderVerb.INTERRUPT:
        board.set_interrupted(True)
        return []
    if order.verb is OrderVerb.PROCEED:
        return _proceed(board, now)
    if order.verb is OrderVerb.HALT:
        return board.halt(order.reason)
    if order.verb is OrderVerb.RESTART:
        return [i for i, s in enumerate(board.steps) if board.set(i, _restarted_with_phase(s))]
    board.set_gate(False)
    return [i for i, s in enumerate(board.steps) if not s.complete and board.set(i, forced(s, now))]


def halt_orders(board: PlanBoard) -> tuple[Order, ...]:
    """Return the orders of a plan that stops on an error, to the phases that have no error of their
    own: a phase with one halts itself."""
    return tuple(
        Order(phase=index, verb=OrderVerb.HALT, reason=board.halt_reason)
        for index, phase in enumerate(board.phases)
        if not (phase.complete or phase.halted)
    )


def _order_step(state: StepState, board: PhaseBoard, order: Order, now: datetime) -> StepState:
    if order.verb is OrderVerb.RESTART:
        return restarted(state)
    if order.verb is OrderVerb.FORCE:
        return state if state.complete else forced(state, now)
    if order.verb is OrderVerb.PROCEED and order.step in board.approvals():
        return completed(state.but(interrupted=False), now)
    return state.but(interrupted=False)


def _restarted_with_phase(state: StepState) -> StepState:
    """Restart a step as part of its phase: a closed gate stays closed."""
    return restarted(state).but(interrupted=state.interrupted and state.attempt == 0)


def _proceed(board: PhaseBoard, now: datetime) -> list[int]:
    """Lift the interrupt, else open the plan's gate, else approve, else open the next gate.

    A waiting approval comes before a closed gate: only steps behind opened gates are at work.
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


def _start(board: PlanBoard, command: Command) -> Decision:
    arguments, problems = check_arguments(board.spec.parameters, command.parameters)
    if problems:
        text = "; ".join(str(problem) for problem in problems)
        raise CommandRefused(Code.INVALID, text)
    given = ", ".join(f"{key}={value}" for key, value in command.parameters.items())
    orders: tuple[Order, ...] = ()
    if (
        board.complete and not board.standing
    ):  # completed phases of a standing plan are not repeated
        orders = _orders_to_phases(board, OrderVerb.RESTART)
    return Decision(
        outcome=Outcome(
            result=Result.DONE,
            message=f"plan {board.spec.name} is started" + (f" with {given}" if given else ""),
        ),
        plan=OrderVerb.PROCEED if board.interrupted else None,
        orders=orders,
        arguments=arguments,
    )


def _stop(board: PlanBoard) -> Decision:
    return Decision(
        outcome=Outcome(result=Result.DONE, message=f"plan {board.spec.name} is stopped"),
        plan=OrderVerb.INTERRUPT,
        orders=_orders_to_phases(board, OrderVerb.RESTART, begun_only=True),
    )


def _continue(board: PlanBoard, phase: int | None, step: int | None) -> Decision:
    if phase is None:
        return _continue_plan(board)
    target = board.phases[phase]
    if step is not None:
        return _continue_step(board, phase, step)
    if target.complete or (target.status.running and not target.approvals()):
        return _already(board, phase)
    if not (target.interrupted or target.gate or target.closed_gate is not None) and (
        not target.approvals()
    ):
        return _nothing(board, f"phase {target.spec.name} does not wait for a continue")
    return _done(board, "continues", Order(phase=phase, verb=OrderVerb.PROCEED))


def _continue_plan(board: PlanBoard) -> Decision:
    status = board.status
    held = board.standing and board.interrupted  # and so are its future phases
    if status.running or (status is Status.COMPLETE and not held):
        return _already(board)
    if not board.interrupted and board.closed_gate is None:
        return _nothing(board, "the plan itself is not interrupted")
    outcome = Outcome(result=Result.DONE, message=f"plan {board.spec.name} continues")
    return Decision(outcome=outcome, plan=OrderVerb.PROCEED)


def _continue_step(board: PlanBoard, phase: int, step: int) -> Decision:
    state = board.phases[phase].steps[step]
    if state.complete:
        return _already(board, phase, step)
    if state.shown is not Status.WAITING:
        name = board.phases[phase].spec.steps[step].name
        return _nothing(board, f"step {name} is {state.shown} and does not wait for a continue")
    return _done(board, "continues", Order(phase=phase, step=step, verb=OrderVerb.PROCEED))


def _interrupt(board: PlanBoard, phase: int | None, step: int | None) -> Decision:
    """Interrupt a plan or a phase. Only an interrupt of an operator makes it ALREADY: an element at
    a canary gate takes the interrupt, and the next continue lifts it before it opens the gate
    (design 8)."""
    if step is not None:
        raise CommandRefused(
            Code.NOT_APPLICABLE,
            "a step can't be interrupted",
            fix="interrupt its phase or the plan",
        )
    if phase is None:
        if board.interrupted or (board.complete and not board.standing):
            return _already(board)
        outcome = Outcome(result=Result.DONE, message=f"plan {board.spec.name} is interrupted")
        return Decision(outcome=outcome, plan=OrderVerb.INTERRUPT)
    target = board.phases[phase]
    if target.interrupted or target.complete:
        return _already(board, phase)
    return _done(board, "is interrupted", Order(phase=phase, verb=OrderVerb.INTERRUPT))


def _restart_or_force(
    board: PlanBoard, verb: Verb, phase: int | None, step: int | None
) -> Decision:
    """Restart a plan, a phase or a step, or force it to complete."""
    status, errors = _status_of(board, phase, step)
    restart = verb is Verb.RESTART
    if status is (Status.PENDING if restart else Status.COMPLETE):
        return _already(board, phase, step)
    if restart and step is not None and errors:
        raise CommandRefused(
            Code.IN_ERROR,
            f"the step can't be restarted: {'; '.join(errors)}",
            fix="correct the plan and deploy it again, or use force-complete",
        )
    order = OrderVerb.RESTART if restart else OrderVerb.FORCE
    text = f"{_element(board, phase, step)} {'restarts' if restart else 'is forced to complete'}"
    if phase is None:
        orders = _orders_to_phases(board, order)
    elif restart and step is None:  # restarting a phase lets it proceed once (behaviour 10.2)
        orders = (Order(phase=phase, verb=OrderVerb.PROCEED), Order(phase=phase, verb=order))
    else:
        orders = (Order(phase=phase, step=step, verb=order),)
    return Decision(
        outcome=Outcome(result=Result.DONE, message=text),
        plan=_order_to_plan(board, restart=restart) if phase is None else None,
        orders=orders,
    )


def _order_to_plan(board: PlanBoard, *, restart: bool) -> OrderVerb | None:
    """Return what restart and force_complete of a whole plan do to the plan itself."""
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


def _orders_to_phases(
    board: PlanBoard, verb: OrderVerb, *, begun_only: bool = False
) -> tuple[Order, ...]:
    return tuple(
        Order(phase=i, verb=verb)
        for i, phase in enumerate(board.phases)
        if not begun_only or any(step != StepState() for step in phase.steps)
    )


def _element(board: PlanBoard, phase: int | None, step: int | None) -> str:
    """Return the element of a command in words."""
    if phase is None:
        return f"plan {board.spec.name}"
    target = board.phases[phase].spec
    if step is None:
        return f"phase {target.name}"
    return f"step {target.steps[step].name} of phase {target.name}"


def _done(board: PlanBoard, does: str, order: Order) -> Decision:
    text = f"{_element(board, order.phase, order.step)} {does}"
    return Decision(outcome=Outcome(result=Result.DONE, message=text), orders=(order,))


def _already(board: PlanBoard, phase: int | None = None, step: int | None = None) -> Decision:
    status, _ = _status_of(board, phase, step)
    text = f"nothing to do: {_element(board, phase, step)} is {status}"
    return Decision(outcome=Outcome(result=Result.ALREADY, message=text, waiting=board.waits()))


def _nothing(board: PlanBoard, why: str) -> Decision:
    waiting = board.waits()
    also = f"; {'; '.join(waiting)}" if waiting else ""
    text = f"nothing changed: {why}{also}"
    return Decision(outcome=Outcome(result=Result.NOTHING, message=text, waiting=waiting))


# --- addressing (behaviour 10.2) ----------------------------------------------------------------


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class _Phase(_Named, Protocol):
    @property
    def steps(self) -> Sequence[_Named]: ...


def find_element(
    phases: Sequence[_Phase], plan_id: str, phase_text: str, step_text: str
) -> tuple[int | None, int | None]:
    """Return the indexes of the phase and step of these names or ids; None for a blank one.

    Raises CommandRefused: MISSING_PHASE, NOT_FOUND with the close names, AMBIGUOUS.
    """
    phase_text, step_text = phase_text.strip(), step_text.strip()
    if not phase_text:
        if step_text:
            raise CommandRefused(
                Code.MISSING_PHASE, f"step {step_text} was named without its phase", fix="name both"
            )
        return None, None
    phase = _find("phase", phase_text, [(p.name, element_id(plan_id, p.name)) for p in phases])
    if not step_text:
        return phase, None
    name = phases[phase].name
    step = _find(
        "step",
        step_text,
        [(s.name, element_id(plan_id, name, s.name)) for s in phases[phase].steps],
    )
    return phase, step


def _find(element: str, text: str, elements: Iterable[tuple[str, str]]) -> int:
    """Return the index of the element of that name or id."""
    pairs = list(elements)
    found = [i for i, pair in enumerate(pairs) if text in pair]
    if len(found) == 1:
        return found[0]
    names = [name for name, _ in pairs]
    if found:
        raise CommandRefused(
            Code.AMBIGUOUS, f"{element} {text} is not unique", fix="use one of the ids"
        )
    raise CommandRefused(
        Code.NOT_FOUND, f"{element} {text} not found", suggestion(text, names) or "there are none"
    )
