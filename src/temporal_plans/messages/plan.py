"""What crosses between Plan, Phase and Step, and what people and programs read of them."""

from datetime import datetime, timedelta
from typing import Any

from pydantic import (
    AwareDatetime,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.board import PhaseState, PlanState
from temporal_plans.domain.cluster import Refusal, Reservation
from temporal_plans.domain.commands import Command, Order, Outcome, Verb
from temporal_plans.domain.errors import shown
from temporal_plans.domain.explain import ElementQuery as ElementQuery
from temporal_plans.domain.explain import Explanation as Explanation
from temporal_plans.domain.explain import Explanations as Explanations
from temporal_plans.domain.model import CompactValue, Duration
from temporal_plans.domain.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.transitions import StepState
from temporal_plans.messages.cluster import TaskRef

PLAN_ENDING = "PlanEnding"
"""The type of failure of an update that came when the plan had nothing left to do but to end."""

# --- what people and programs read --------------------------------------------------------------


class StepView(CompactValue):
    """A step as it is shown. ``message`` says in words why it does not move, when it does not.
    ``task`` is the newest task of a step that runs a command: whose output there is to read."""

    id: str
    name: str
    kind: str
    status: Status
    message: str = ""
    attempt: int = 0
    forced: bool = False
    started: datetime | None = None
    finished: datetime | None = None
    errors: tuple[str, ...] = ()
    task: str = ""


class PhaseView(CompactValue):
    id: str
    name: str
    strategy: str
    status: Status
    started: datetime | None = None
    finished: datetime | None = None
    steps: tuple[StepView, ...] = ()


class PlanView(CompactValue):
    """Answer of the Plan's query ``status``: the whole tree. ``waiting`` names what waits for an
    operator."""

    id: str
    name: str
    service: str = ""
    strategy: str
    status: Status
    parameters: dict[str, str] = {}
    errors: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    started: datetime | None = None
    finished: datetime | None = None
    phases: tuple[PhaseView, ...] = ()


class LogEntry(CompactValue):
    """A command as it is kept: what, by whom, why, how it came and what it did."""

    at: datetime
    verb: str
    phase: str = ""
    step: str = ""
    parameters: dict[str, str] = {}
    by: str = ""
    reason: str = ""
    via: str = Field(description="signal or update")
    outcome: Outcome


class CommandLog(CompactValue):
    """Answer of the query ``log``, oldest first. ``dropped`` older ones are no longer kept."""

    entries: tuple[LogEntry, ...] = ()
    dropped: int = 0


class FirstCommand(CompactValue):
    """A command to a plan that had ended: a new run is started from where it ended, with this."""

    verb: Verb
    command: Command


class PlanResult(CompactValue):
    """Result of the Plan workflow: its last view, and the state that a new run may begin from."""

    status: Status
    view: PlanView
    state: PlanState | None = None
    superseded: bool = False


class CommandMessage(Command):
    """A command as a signal brings it. One that can't be read is kept as ``malformed``, so that it
    shows in the log: a signal has no answer, and the SDK drops what does not decode."""

    malformed: str = ""

    @model_validator(mode="wrap")
    @classmethod
    def _keep_the_malformed(
        cls, value: Any, read: ModelWrapValidatorHandler["CommandMessage"]
    ) -> "CommandMessage":
        try:
            return read(value)
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'input'}: {fault['msg']}"
                for fault in error.errors(include_url=False, include_input=False)
            )
            return cls.model_construct(malformed=f"{faults} (got {shown(value)})")


# --- inputs and messages between the workflows --------------------------------------------------


class ServiceContext(CompactValue):
    """Tells a plan that it works on a service. ``run`` counts the service's runs of the plan, and
    ``starter`` is the first run of that service's workflow: others of its name count as well.
    ``priority``: lower gets an asset first. ``config_id`` is the configuration that its pods are
    launched with; empty: the target, whatever that is by then."""

    service: str
    workflow_id: str
    config_id: str = ""
    plan: str
    run: int = 0
    starter: str = ""
    pool: str = "default"
    priority: int = 0


class PlanInput(PlanSpec):
    """Input of the Plan workflow: a plan file as it is, and what may be said beside it.

    ``arguments`` are the parameters' values; ``interrupted`` starts it WAITING; after
    ``history_limit`` events it and its phases continue as new. The other fields are the engine's
    own: ``context`` of a service, ``state`` and ``log`` carried over, ``first`` the commands that a
    plan is begun anew with. ``errors`` are of its service: a configuration that was refused.
    A ``standing`` plan stays when it is complete, for its service gives it more phases;
    ``revision`` is the last one that it took.
    """

    arguments: dict[str, str] = {}
    interrupted: bool = False
    backoff: Backoff = Backoff()
    context: ServiceContext | None = None
    state: PlanState | None = None
    log: CommandLog = CommandLog()
    seed: int | None = None
    started: AwareDatetime | None = None
    history_limit: int = Field(default=4000, ge=50)
    leased: dict[int, tuple[int, ...]] = {}
    first: tuple["FirstCommand", ...] = ()
    errors: tuple[str, ...] = ()
    standing: bool = False
    revision: int = 0


class PlanRevision(CompactValue):
    """Signal ``revise`` from a Service to its standing plan: phases to add, each in the place of
    one of the same name, and phases to drop. ``number`` counts up; a repeated one is ignored.

    A phase that is at work and is replaced or dropped first leaves, as for a new run of the
    workflow; what it left is forgotten.
    """

    number: int
    put: tuple["PhasePut", ...] = ()
    drop: tuple[str, ...] = ()


class PhasePut(CompactValue):
    """A phase for a standing plan, and the state that it begins in."""

    spec: PhaseSpec
    state: PhaseState = PhaseState()


class PlanFaults(CompactValue):
    """Signal ``faults`` from a Service to its plan: the errors of a configuration that was refused,
    or none any more. A plan with errors reads ERROR, and works on."""

    errors: tuple[str, ...] = ()


class Supersede(CompactValue):
    """Signal ``supersede`` from a Service to its plan: another takes its place. It begins nothing
    more, leaves its steps where they are, and ends with its state. ``why`` is for people."""

    why: str = ""


class PhaseInput(CompactValue):
    """Input of a Phase workflow, always from its Plan. ``index`` is the number by which the plan
    knows it: its place, unless it was put into a standing plan.

    ``order`` is the last order carried out, ``leased`` the steps whose asset it has, ``unreported``
    those whose change the plan has not heard of, all from an earlier run; ``pace`` is the least
    time between two reports to the plan. ``token`` tells this start of the phase from others of the
    same id: messages between it and the plan that name another were meant for, or are of, another.
    """

    index: int
    token: str = ""
    spec: PhaseSpec
    state: PhaseState
    inline: bool = False
    permitted: bool = True
    arguments: dict[str, str] = {}
    backoff: Backoff = Backoff()
    context: ServiceContext | None = None
    seed: int = 0
    order: int = 0
    leased: tuple[int, ...] = ()
    unreported: tuple[int, ...] = ()
    pace: Duration = timedelta(milliseconds=300)
    history_limit: int = 4000


class PhaseResult(CompactValue):
    """A Phase's end. ``yielded``: it ended early, to be started again from this state; ``order`` is
    the last order that was carried out, ``leased`` the steps that keep their asset."""

    state: PhaseState
    order: int = 0
    leased: tuple[int, ...] = ()
    yielded: bool = False


class PhaseDelta(CompactValue):
    """Signal ``phase_changed`` from a Phase to its Plan: the steps that changed since the last one,
    and the last order that has been carried out. ``token`` as in PhaseInput."""

    phase: int
    token: str = ""
    order: int = 0
    interrupted: bool = False
    gate: bool = False
    steps: dict[int, StepState] = {}


class PhaseOrders(CompactValue):
    """Signal ``orders`` from a Plan to a running Phase. ``number`` counts up; ``permitted`` is
    whether the plan's strategy lets it begin new work; ``leave`` asks it to end with its state,
    and ``dismissed`` that it is not taken up again, so it gives its assets back. ``token`` as in
    PhaseInput."""

    number: int
    token: str = ""
    orders: tuple[Order, ...] = ()
    permitted: bool = True
    leave: bool = False
    dismissed: bool = False
    arguments: dict[str, str] | None = None


class StepInput(CompactValue):
    """Input of a Step workflow, always from its Phase. ``token`` as in PhaseInput."""

    index: int
    token: str = ""
    order: int = 0
    permitted: bool = True
    spec: StepSpec
    state: StepState
    arguments: dict[str, str] = {}
    backoff: Backoff = Backoff()
    context: ServiceContext | None = None


class StepResult(CompactValue):
    """A Step's end. ``yielded``: it ended early, to be started again from this state; ``order`` is
    the last order that it heard."""

    state: StepState
    order: int = 0
    yielded: bool = False


class StepDelta(CompactValue):
    """Signal ``step_changed`` from a Step to its Phase; ``order`` is the last order it heard,
    ``token`` as in PhaseInput."""

    token: str = ""
    index: int
    order: int = 0
    state: StepState


class StepOrder(CompactValue):
    """Signal ``order`` to a running Step. ``state`` is its new state, ``permitted`` whether it may
    begin an attempt; ``leave`` asks it to end with its state as soon as that loses nothing.
    ``number`` counts the orders that carry a state; ``token`` as in PhaseInput."""

    number: int = 0
    token: str = ""
    state: StepState | None = None
    permitted: bool = True
    leave: bool = False


# --- activities of the plans queue for pod steps ------------------------------------------------


class PreparePodInput(CompactValue):
    """Input of the activity ``prepare_pod``: resources for a pod, and its launch on record.

    ``attempt`` makes task ids new for every try, and the same for every retry of one that has the
    same reservation.
    ``config_id`` is the configuration to launch; empty: the context's, or else the target.
    """

    context: ServiceContext
    step: str = Field(description="the workflow that the tasks' statuses go to")
    element: str = Field(description="plan/phase/step, for people")
    pod: str
    index: int
    tasks: tuple[str, ...]
    attempt: str
    config_id: str = ""
    asked: AwareDatetime | None = Field(default=None, description="when the attempt began")


class PreparedTask(CompactValue):
    """A task to start. ``goal`` and ``readiness_check`` are what completes it; a ``paused`` one
    has no checks, and never finishes (reference 6.8)."""

    task_id: str
    task: str
    goal: str
    readiness_check: bool = False
    paused: bool = False


class PreparePodResult(CompactValue):
    """A reservation with the tasks to start and those to kill before; or why nothing fits yet.
    ``config_id`` is the configuration that the launch was recorded with; ``in_use`` the sets of the
    pod's own tasks that run on."""

    reservation: Reservation | None = None
    refusals: tuple[Refusal, ...] = ()
    in_use: tuple[str, ...] = ()
    tasks: tuple[PreparedTask, ...] = ()
    kill: tuple[TaskRef, ...] = ()
    config_id: str = ""
