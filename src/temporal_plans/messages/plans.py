"""Messages between the workflows Plan, Phase and Step, and those between a plan and clients."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
)

from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.board import PhaseState, PlanState
from temporal_plans.domain.plans.commands import Command, Order, Outcome, Verb
from temporal_plans.domain.plans.leases import Lease
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.plans.transitions import StepState
from temporal_plans.domain.values.compressed import TEXT_LIMITS, CompressibleValue
from temporal_plans.domain.values.model import CompactValue, Duration, Name, WorkflowId
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.malformed import SignalArgument
from temporal_plans.messages.plan_views import PlanView

# --- messages between a plan and clients --------------------------------------------------------


class LogEntry(CompactValue):
    """An entry of a command log: the command, who gave it, why, how it arrived, and its outcome;
    for a failure of developers' code its ``trace``. ``force`` and ``mark`` are those of the
    command."""

    at: datetime
    verb: str
    phase: str = ""
    step: str = ""
    parameters: dict[str, str] = {}
    force: bool = False
    by: str = ""
    reason: str = ""
    mark: str = ""
    via: str = Field(description="signal or update; pipeline: by itself")
    outcome: Outcome
    trace: str = ""


class CommandLog(CompressibleValue):
    """Answer of the query ``log``, oldest first. ``dropped`` is the number of older entries that
    are no longer kept."""

    entries: tuple[LogEntry, ...] = ()
    dropped: int = 0


class FirstCommand(CompactValue):
    """The command with which a new run begins, of a plan that has ended."""

    verb: Verb
    command: Command


class PlanResult(CompressibleValue):
    """Result of the Plan workflow: its last view, and the state for a new run to begin with."""

    status: Status
    view: PlanView
    state: PlanState | None = None
    superseded: bool = False

    def shorter_forms(self) -> Iterator["PlanResult"]:
        for limit in TEXT_LIMITS:
            state = self.state and self.state.with_texts_of(limit)
            yield self.but(view=self.view.with_texts_of(limit), state=state)


class CommandMessage(Command, SignalArgument):
    """A command that arrives as a signal. A ``malformed`` one has its defaults otherwise."""


# --- inputs, results and signals of the workflows -----------------------------------------------


class PodContext(CompactValue):
    """The pool and the configuration for a plan's steps that work on pods.

    ``pool`` is where the pods are placed; ``config_id`` is the configuration that they are launched
    with; when empty, the target configuration at the time of the launch.
    """

    pool: str = "default"
    config_id: str = ""


class OwnerContext(CompactValue):
    """The owner of a plan: the workflow that receives its reports and grants its leases.

    ``owner`` is the owner's name, ``workflow_id`` the id of its workflow, and ``starter`` the first
    run id of that: another workflow of the same id numbers its runs of the plan (``run``) from 1
    as well. ``priority``: the plan with the lower number gets an asset first. ``pods`` is set when
    the plan's steps may work on pods; ``part`` is plain data of the owner's wing, which the engine
    carries and the wing's step kinds read. ``follows_rest``: the owner needs to know when the plan
    rests (``PlanReport.resting``), also while its status stays the same.
    """

    owner: str
    workflow_id: str
    plan: str
    run: int = 0
    starter: str = ""
    priority: int = 0
    pods: PodContext | None = None
    part: Any = None
    follows_rest: bool = False


class EngineInput(CompactValue):
    """The engine's own part of a plan's input, refused from any other sender (``PLAN_STARTER``).

    ``context`` is the plan's owner; ``state``, ``log``, ``seed``, ``started`` and ``leased`` are
    carried over from a previous run; ``first`` are the commands that a new run begins with.
    ``errors`` are the owner's: its newest configuration was refused. A ``standing`` plan stays open
    when it is complete, because its owner adds more phases; ``revision`` is the number of the last
    PlanRevision that was applied.
    """

    context: OwnerContext | None = None
    state: PlanState | None = None
    log: CommandLog = CommandLog()
    seed: int | None = None
    started: AwareDatetime | None = None
    leased: dict[int, tuple[int, ...]] = {}
    first: tuple[FirstCommand, ...] = ()
    errors: tuple[str, ...] = ()
    standing: bool = False
    revision: int = 0


class PlanInput(PlanSpec, CompressibleValue):
    """Input of the Plan workflow: the content of a plan file, and the settings of this run.

    ``arguments`` are the parameters' values; ``interrupted`` starts the plan WAITING; after
    ``history_limit`` events the plan and its phases continue as new; ``by`` and ``reason`` are the
    first entry of its log. ``engine`` is the engine's own, and refused from any other sender.
    """

    arguments: dict[str, str] = {}
    interrupted: bool = False
    backoff: Backoff = Backoff()
    history_limit: int = Field(default=4000, ge=50)
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)
    engine: EngineInput | None = None

    def shorter_forms(self) -> Iterator["PlanInput"]:
        if self.engine is None or self.engine.state is None:
            return
        for limit in TEXT_LIMITS:
            engine = self.engine.but(state=self.engine.state.with_texts_of(limit))
            yield self.but(engine=engine)


PLAN_RUN, PLAN_STARTER = "run", "starter"
"""Memos of a plan's workflow that identify its start: the owner's number of the run, and the first
run id of the owner's workflow. A plan without ``PLAN_STARTER`` was started by a user."""

BY_CLIENT = "client"
"""The starter of a plan without an owner when a command started a new run of it, with its log."""


class PlanRevision(CompressibleValue):
    """Signal ``revise`` from a Service to its standing plan.

    ``put`` are phases to add, each replacing a phase of the same name; ``drop`` are phases to
    remove. ``number`` increases with each revision; a repeated one is ignored. A phase at work that
    is replaced or removed is first asked to end; its state is discarded.
    """

    number: int
    put: tuple["PhasePut", ...] = ()
    drop: tuple[str, ...] = ()


class PhasePut(CompactValue):
    """A phase for a standing plan, and its initial state."""

    spec: PhaseSpec
    state: PhaseState = PhaseState()


_Fault = Annotated[str, AfterValidator(partial(shortened, limit=1000))]
"""A plan carries its errors from run to run."""


class PlanFaults(CompactValue):
    """Signal ``faults`` from a Service to its plan: the errors of a refused configuration; empty
    when they are fixed. A plan with errors has the status ERROR, and continues its work."""

    errors: tuple[_Fault, ...] = Field(default=(), max_length=1000)


class Supersede(CompactValue):
    """Signal ``supersede`` from a Service to its plan: another run takes its place. The plan starts
    nothing more, leaves its steps in their state, and ends. ``why`` is a text for operators."""

    why: str = ""


class PhaseInput(CompressibleValue):
    """Input of a Phase workflow, always from its Plan.

    ``index`` identifies the phase in its plan: its position, unless it was added to a standing
    plan. From an earlier run come ``order``, the last order that was carried out, ``leased``, the
    steps that hold their asset, and ``unreported``, the steps whose change was not reported to the
    plan. ``pace`` is the minimal interval between two reports. ``token`` identifies this start of
    the phase among starts with the same id: phase and plan ignore messages with another token.
    ``reserving``: steps that reserve resources read PREPARED until then. It is false in phases that
    were started before this field existed: there they read STARTING. ``stops_on_error`` as in
    PhaseBoard.
    """

    index: int
    token: str = ""
    spec: PhaseSpec
    state: PhaseState
    inline: bool = False
    reserving: bool = False
    stops_on_error: bool = False
    permitted: bool = True
    arguments: dict[str, str] = {}
    backoff: Backoff = Backoff()
    context: OwnerContext | None = None
    seed: int = 0
    order: int = 0
    leased: tuple[int, ...] = ()
    unreported: tuple[int, ...] = ()
    pace: Duration = timedelta(milliseconds=300)
    history_limit: int = 4000

    def shorter_forms(self) -> Iterator["PhaseInput"]:
        for limit in TEXT_LIMITS:
            yield self.but(state=self.state.with_texts_of(limit))


class PhaseResult(CompressibleValue):
    """Result of a Phase workflow. ``yielded``: it ended early, to be started again in this state;
    ``order`` is the last order that was carried out, ``leased`` the steps that keep their asset."""

    state: PhaseState
    order: int = 0
    leased: tuple[int, ...] = ()
    yielded: bool = False

    def shorter_forms(self) -> Iterator["PhaseResult"]:
        for limit in TEXT_LIMITS:
            yield self.but(state=self.state.with_texts_of(limit))


class PhaseDelta(CompressibleValue):
    """Signal ``phase_changed`` from a Phase to its Plan: the steps that changed since the last
    report, and the last order that was carried out. ``token`` as in PhaseInput."""

    phase: int
    token: str = ""
    order: int = 0
    interrupted: bool = False
    gate: bool = False
    steps: dict[int, StepState] = {}

    def shorter_forms(self) -> Iterator["PhaseDelta"]:
        for limit in TEXT_LIMITS:
            yield self.but(steps={i: one.with_texts_of(limit) for i, one in self.steps.items()})


class PhaseOrders(CompressibleValue):
    """Signal ``orders`` from a Plan to a running Phase.

    ``number`` increases with each message; ``permitted``: the plan's strategy lets the phase start
    new work; ``leave`` asks the phase to end with its state; ``dismissed``: it will not be started
    again, so it returns its assets. ``token`` as in PhaseInput.
    """

    number: int
    token: str = ""
    orders: tuple[Order, ...] = ()
    permitted: bool = True
    leave: bool = False
    dismissed: bool = False
    arguments: dict[str, str] | None = None


class StepInput(CompactValue):
    """Input of a Step workflow, always from its Phase. ``token`` and ``reserving`` as in
    PhaseInput."""

    index: int
    token: str = ""
    reserving: bool = False
    order: int = 0
    permitted: bool = True
    spec: StepSpec
    state: StepState
    arguments: dict[str, str] = {}
    backoff: Backoff = Backoff()
    context: OwnerContext | None = None


class StepResult(CompactValue):
    """Result of a Step workflow. ``yielded``: it ended early, to be started again in this state;
    ``order`` is the last order that it received."""

    state: StepState
    order: int = 0
    yielded: bool = False


class StepDelta(CompactValue):
    """Signal ``step_changed`` from a Step to its Phase; ``order`` is the last order that it
    received, ``token`` as in PhaseInput."""

    token: str = ""
    index: int
    order: int = 0
    state: StepState


class StepOrder(CompactValue):
    """Signal ``order`` from a Phase to a running Step.

    ``state`` is the step's new state, ``permitted`` whether it may start an attempt; ``leave`` asks
    it to end with its state as soon as no work is lost by that. ``halt`` has the step cancel its
    attempt, for this reason, and reset itself, which its parents can't do: what it keeps, and
    whether it is complete by now, only the step knows. ``number`` counts the orders that have a
    state; ``token`` as in PhaseInput.
    """

    number: int = 0
    token: str = ""
    state: StepState | None = None
    permitted: bool = True
    leave: bool = False
    halt: str = ""


# --- messages between plans and their owner -----------------------------------------------------


class LeaseRequest(CompressibleValue):
    """Signal ``leases`` from a Phase to its Service: leases that it requests, and the steps (by
    index) that return theirs. ``ended``: the Phase has ended, and returns all."""

    phase: WorkflowId = Field(min_length=1)
    wants: tuple[Lease, ...] = ()
    returns: tuple[int, ...] = ()
    ended: bool = False


class LeaseGrant(CompressibleValue):
    """Signal ``leased`` from the Service to a Phase. ``granted``: steps that now have their asset
    (step index -> ticket); ``held``: steps that wait, and the holder of their asset (step index ->
    plan/phase)."""

    granted: dict[int, int] = {}
    held: dict[int, str] = {}


class PlanReport(CompressibleValue):
    """Signal ``plan_changed`` from a Plan to its Service. ``open`` is false at the plan's end.

    ``superseded``: the plan ended because its Service superseded it. For a standing plan,
    ``incomplete`` are its phases that are not complete, and ``revision`` is the last revision that
    was applied. ``run`` and ``starter`` come from the plan's OwnerContext; ``run_id`` is the
    workflow run that reports. ``forced``, at the end, are the steps (``phase/step``) that an
    operator forced to complete. ``resting``: nothing is at work, and nothing begins before the next
    command; ``stopped``: it is interrupted, with every step as if it had never begun. An owner with
    ``OwnerContext.follows_rest`` gets a report when one of the two changes.
    """

    plan: Name
    run: int = 0
    starter: Name = ""
    workflow_id: WorkflowId
    status: Status
    open: bool = True
    superseded: bool = False
    incomplete: tuple[str, ...] = ()
    revision: int = 0
    run_id: Name = ""
    forced: tuple[str, ...] = ()
    resting: bool = False
    stopped: bool = False
