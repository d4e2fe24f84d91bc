"""What crosses between a Service, its plans and their phases, and what is read of a Service."""

from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.change import PodChange
from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.errors import Problem
from temporal_plans.domain.goal_override import GoalOverride
from temporal_plans.domain.leases import Lease as Lease
from temporal_plans.domain.leases import LeaseState as LeaseState
from temporal_plans.domain.model import CompactValue, WorkflowId
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.recovery_book import RecoveryBook, RecoveryReport
from temporal_plans.domain.recovery_policy import RecoveryPolicy
from temporal_plans.domain.restart_delay import RestartDelay
from temporal_plans.domain.rollout import Rollout as Rollout
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task_record import TaskRecord as TaskRecord
from temporal_plans.messages.cluster import TaskRef, TaskStatuses
from temporal_plans.messages.plan import (
    CommandLog,
    FirstCommand,
    PlanFaults,
    PlanInput,
    PlanRevision,
    PlanView,
    Supersede,
)

SERVICE_HISTORY = 1500
"""History events after which a Service continues as new. It looks at all of its tasks whenever
something happens, and has to do all that again, within ten seconds, when a worker is new to it."""


class ServiceInput(CompactValue):
    """Input of the Service workflow: what to deploy, and where.

    ``plans`` replaces what would be generated from ``spec``; ``by`` and ``reason`` are kept with
    the configuration; ``rollout`` holds for this deployment only. ``state`` is the engine's own
    (``packed`` when it is large, see ``packed_state``), and so is ``history_limit``: events after
    which it continues as new.
    """

    spec: ServiceSpec
    pool: str = "default"
    backoff: Backoff = Backoff()
    recovery: RecoveryPolicy = RecoveryPolicy()
    plans: tuple[PlanSpec, ...] | None = None
    rollout: Rollout = Rollout()
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)
    state: "ServiceState | None" = None
    packed: str = ""
    history_limit: int = Field(default=SERVICE_HISTORY, ge=50)


class PlanRecord(CompactValue):
    """A plan of a service, as the service knows it. ``run`` counts how often it was started;
    ``superseded``: it ended because another took its place. ``dropped``: the service has no such
    plan any more, and its workflow is asked to end."""

    name: str
    workflow_id: str
    priority: int
    status: Status = Status.PENDING
    run: int = 0
    open: bool = False
    changed: datetime | None = None
    superseded: bool = False
    dropped: bool = False


class LeaseRequest(CompactValue):
    """Signal ``leases`` from a Phase to its Service: assets wanted, and steps that give theirs
    back. ``ended``: the Phase is over and gives all back."""

    phase: WorkflowId = Field(min_length=1)
    wants: tuple[Lease, ...] = ()
    returns: tuple[int, ...] = ()
    ended: bool = False


class LeaseGrant(CompactValue):
    """Signal ``leased`` from the Service to a Phase: steps that have their asset now, and those
    that wait, with who holds it (step index -> plan/phase). ``granted``: step index -> ticket."""

    granted: dict[int, int] = {}
    held: dict[int, str] = {}


class PlanReport(CompactValue):
    """Signal ``plan_changed`` from a Plan to its Service. ``open`` is false at its end.

    ``superseded``: it ended because its Service asked it to. A standing plan says in ``incomplete``
    which of its phases are not complete, and in ``revision`` the last revision that it took.
    ``run`` and ``starter`` are what its Service gave it, and ``run_id`` the workflow run that
    reports; ``forced``, at the end, the steps that somebody forced to complete, as ``phase/step``.
    """

    plan: str
    run: int = 0
    starter: str = ""
    workflow_id: str
    status: Status
    open: bool = True
    superseded: bool = False
    incomplete: tuple[str, ...] = ()
    revision: int = 0
    run_id: str = ""
    forced: tuple[str, ...] = ()


class StartPlan(Command):
    """Argument of the Service's update ``start_plan``: run a plan that has ended again.

    It goes on from where it ended, with this command: ``start``, or ``restart`` of it all, of a
    phase or of a step.
    """

    plan: str
    verb: Literal[Verb.START, Verb.RESTART] = Verb.START


class PlanBegin(CompactValue):
    """A plan that is to begin as soon as it may: its former run must have ended before.

    ``first``: it goes on from where it ended, with this command; ``interrupted``: it begins
    WAITING. ``forced`` are steps that stay complete, by ``phase/step``, because somebody forced
    them in the run before, which deployed the configuration ``former``.
    """

    first: FirstCommand | None = None
    interrupted: bool = False
    rollout: Rollout = Rollout()
    forced: tuple[str, ...] = ()
    former: str = ""
    by: str = ""
    reason: str = ""
    what: str = ""


class PlanStart(CompactValue):
    """Input of the activity ``start_plan``; idempotent by ``run`` and ``starter``, the first run of
    the Service that starts it, ``at`` that time: a Service that was reset gives numbers again.
    ``keep_log``: the commands to its former runs stay in its log."""

    workflow_id: str
    run: int
    starter: str = ""
    at: AwareDatetime | None = None
    keep_log: bool = False
    input: PlanInput


class OpenPlans(CompactValue):
    """Input of the activity ``closed_plans``: plan workflows thought to be open."""

    workflow_ids: tuple[str, ...]


class ClosedPlans(CompactValue):
    """Those of them that are over."""

    workflow_ids: tuple[str, ...] = ()


class SubscribeMessage(CompactValue):
    """Signal ``subscribe`` from a Step that was started again: what became of these tasks?

    Those that the Service does not follow, because a newer launch took their place or because it
    never heard of them, are answered as GONE.
    """

    owner: WorkflowId = Field(min_length=1)
    task_ids: tuple[str, ...] = Field(max_length=2000)


class DeployResult(CompactValue):
    """Answer of the Service's update ``deploy``: the configuration in force, its deploy plan, and
    what changes. Refused (code 417), ``change.problems`` has every reason, and the configuration
    before stays in force."""

    config_id: str
    plan: str
    outcome: Outcome
    number: int = 0
    change: "ChangeView | None" = None


class ChangeView(CompactValue):
    """What a configuration would change, and what it would not be allowed to. Answer of the
    Service's query ``preview`` (ServiceInput), which also has the plans as they would begin."""

    pods: tuple[PodChange, ...] = ()
    problems: tuple[Problem, ...] = ()
    deploy: PlanView | None = None
    decommission: PlanView | None = None


class ChangeCheck(CompactValue):
    """Input of the activity ``check_change``: may ``after`` be deployed, ``before`` being in force?
    ``before`` is None for the first configuration."""

    before: ServiceSpec | None
    after: ServiceSpec
    plans: tuple[PlanSpec, ...] | None = None
    rollout: Rollout = Rollout()
    deployed_once: bool = False


class ChangeProblems(CompactValue):
    """Its result: every reason why not."""

    problems: tuple[Problem, ...] = ()


class Configurations(CompactValue):
    """Answer of the Service's query ``configurations``: those kept, oldest first."""

    configurations: tuple[Configuration, ...] = ()
    target: str = ""


class Rollback(CompactValue):
    """Argument of the Service's update ``rollback``: deploy an earlier configuration again.
    ``config``: its id or its number."""

    config: str
    rollout: Rollout = Rollout()
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


class PodCommand(CompactValue):
    """Argument of the Service's updates and signals ``restart_pod``, ``replace_pod``, ``pause_pod``
    and ``resume_pod``. ``pod`` is an instance (``hello-0``); ``tasks``, for the last two, as
    ``server`` or ``hello-0-server``, all when empty."""

    pod: str = Field(max_length=300)
    tasks: tuple[str, ...] = Field(default=(), max_length=100)
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


class PodCommandResult(CompactValue):
    """The instance, and the task instances that the command kills, as reference 10.3 has it."""

    pod: str
    tasks: tuple[str, ...] = ()
    outcome: Outcome


class UninstallRequest(CompactValue):
    """Argument of the Service's update and signal ``uninstall``: take everything away, for good."""

    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


class RunRecord(CompactValue):
    """One run of a service's plan. ``what`` says what changed (a deployment) or how it was begun;
    ``run_id`` is the workflow run that it ended in."""

    plan: str
    run: int
    started: datetime
    ended: datetime | None = None
    status: Status
    superseded: bool = False
    config: int = 0
    by: str = ""
    reason: str = ""
    what: str = ""
    run_id: str = ""


class RunHistory(CompactValue):
    """Answer of the Service's query ``runs``: runs of all its plans, oldest first. ``dropped``
    older ones are no longer kept."""

    runs: tuple[RunRecord, ...] = ()
    dropped: int = 0


class RetireTask(CompactValue):
    """Argument of the Service's update ``retire_task``: kill this task and never relaunch it.
    Idempotent. ``task_id``: one launch; empty: the newest of ``task``."""

    task: str
    task_id: str = ""


class Retired(CompactValue):
    """Answer: ``dead``, or where it is and why it is not dead yet."""

    dead: bool
    agent: str = ""
    reason: str = ""


class EraseTask(CompactValue):
    """Argument of the Service's update ``erase_task``: forget it. Idempotent; once a pod instance
    has no task left its reservation is forgotten too, which lets the Pool take it back."""

    task: str


class Released(CompactValue):
    """Signal ``released`` to a Service: the Pool has taken this reservation back. ``reservation``
    is its id; empty: whichever is under the key."""

    key: str
    reservation: str = ""


class ServiceResult(CompactValue):
    """Result of the Service workflow: it was uninstalled."""

    name: str
    log: CommandLog = CommandLog()
    runs: RunHistory = RunHistory()


class PodView(CompactValue):
    """A pod instance with its tasks' newest records. ``shown`` is what each task reads, by the
    task's name: its state, or PAUSED, PAUSING, DECOMMISSIONED, DECOMMISSIONING (reference 6.8).
    ``wanted``: the target configuration has it."""

    name: str
    type: str
    index: int
    agent: str = ""
    hostname: str = ""
    reservation: Reservation | None = None
    tasks: tuple[TaskRecord, ...] = ()
    shown: dict[str, str] = {}
    wanted: bool = True


class ServiceStatus(CompactValue):
    """Answer of the Service's query ``status``. ``errors``: why the newest configuration was
    refused, until another is deployed."""

    name: str
    config_id: str
    pool: str
    number: int = 1
    errors: tuple[str, ...] = ()
    uninstalling: bool = False
    configs: tuple[str, ...] = ()
    plans: tuple[PlanRecord, ...] = ()
    tasks: int = 0
    running: int = 0
    leases: tuple[Lease, ...] = ()


class Pods(CompactValue):
    """Answer of the Service's query ``pods``."""

    pods: tuple[PodView, ...] = ()


class Tasks(CompactValue):
    """Answer of the Service's query ``tasks``."""

    tasks: tuple[TaskRecord, ...] = ()


Message = LeaseGrant | TaskStatuses | Supersede | PlanFaults | PlanRevision
"""What a Service tells its plans, phases and steps."""


class Unsent(CompactValue):
    """A signal that a run of the Service left to the next one. It may arrive twice."""

    receiver: str
    signal: str
    message: Message


class RecoveryState(CompactValue):
    """What a Service remembers about recovery: what is under way, as it told its plan and as the
    plan last said; the back-off of tasks, by name; since when tasks are down, by id."""

    book: RecoveryBook = RecoveryBook()
    report: RecoveryReport = RecoveryReport()
    delays: dict[str, RestartDelay] = {}
    down: dict[str, datetime] = {}


class ServiceState(CompactValue):
    """What a Service carries from run to run.

    ``doomed`` are tasks that it has yet to kill; ``pending`` plans that are to begin; ``rejected``
    why the newest configuration was refused; ``updates``: its plans are those of a service that had
    been deployed before (reference 5.4); ``lost_agents``: when the Pool last gave them up.
    """

    configs: tuple[Configuration, ...] = ()
    target: str = ""
    tasks: dict[str, TaskRecord] = {}
    reservations: dict[str, Reservation] = {}
    overrides: dict[str, GoalOverride] = {}
    lost_agents: dict[str, datetime] = {}
    plans: dict[str, PlanRecord] = {}
    pending: dict[str, PlanBegin] = {}
    starting: tuple[PlanStart, ...] = ()
    runs: RunHistory = RunHistory()
    leases: LeaseState = LeaseState()
    recovery: RecoveryState = RecoveryState()
    deployed_once: bool = False
    updates: bool = False
    rejected: tuple[str, ...] = ()
    uninstalling: bool = False
    log: CommandLog = CommandLog()
    unsent: tuple[Unsent, ...] = ()
    doomed: tuple[TaskRef, ...] = ()


class LaunchTarget(CompactValue):
    """Argument of the Service's query ``launch_target``: how is this pod to be launched?
    ``tasks``: these of it; ``config_id``: with this configuration; empty: the target."""

    pod: str
    index: int
    tasks: tuple[str, ...] = ()
    config_id: str = ""


class LaunchPlace(CompactValue):
    """Answer: the configuration, and where. ``replaces``: the reservation that it has to leave for
    another, because the pod was given up there; empty: it stays where it is. ``in_use``: the
    resource sets of the pod's tasks that run on beside those that are launched."""

    config_id: str
    spec: ServiceSpec
    replaces: str = ""
    in_use: tuple[str, ...] = ()
