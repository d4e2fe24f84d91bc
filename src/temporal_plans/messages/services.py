"""Messages between a Service, its plans and clients."""

from collections.abc import Iterator
from datetime import datetime

from pydantic import AwareDatetime, Field

from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.owners.rollout import Rollout
from temporal_plans.domain.plans.backoff import Backoff
from temporal_plans.domain.plans.commands import Outcome
from temporal_plans.domain.plans.leases import Lease, LeaseState
from temporal_plans.domain.plans.plan import PlanSpec
from temporal_plans.domain.services.change import FieldChange, PlanChange, PodChange
from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.goal_override import GoalOverride
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.recovery.keeper import RecoveryState
from temporal_plans.domain.services.recovery.policy import RecoveryPolicy
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.services.task_book import TaskBook
from temporal_plans.domain.tasks.statuses import TaskRef, TaskStatus
from temporal_plans.domain.values.compressed import TEXT_LIMITS, CompressibleValue
from temporal_plans.domain.values.model import CompactValue, WorkflowId
from temporal_plans.domain.values.refusal import Reason, Refusal
from temporal_plans.domain.values.text import shortened
from temporal_plans.messages.malformed import SignalArgument
from temporal_plans.messages.owners import DeployAnswer, OwnerState, OwnerStatus
from temporal_plans.messages.plan_views import PlanView
from temporal_plans.messages.plans import (
    OwnerContext,
    PodContext,
)

SERVICE_HISTORY_LIMIT = 1500
"""History events after which a Service continues as new. It examines all of its tasks at every
event, and another worker must be able to replay that within ten seconds."""


class ServiceInput(CompressibleValue):
    """Input of the Service workflow, and argument of its update ``deploy`` and query ``preview``.

    ``plans`` replaces the plans that are generated from ``spec``; ``by`` and ``reason`` are kept
    with the configuration; ``rollout`` applies to this deployment only. ``state`` is the engine's
    own, and so is ``history_limit``, the number of events after which the Service continues as new.
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
    history_limit: int = Field(default=SERVICE_HISTORY_LIMIT, ge=50)

    def shorter_forms(self) -> Iterator["ServiceInput"]:
        if self.state is not None:
            for limit in TEXT_LIMITS:
                yield self.but(state=self.state.with_texts_of(limit))


class SubscribeMessage(CompactValue):
    """Signal ``subscribe`` from a Step that was restarted: send it the statuses of these tasks.

    The Service answers GONE for a task that it does not track, because a newer launch replaced it
    or because it is unknown.
    """

    owner: WorkflowId = Field(min_length=1)
    task_ids: tuple[str, ...] = Field(max_length=2000)


class DeployResult(DeployAnswer):
    """Answer of the Service's updates ``deploy`` and ``rollback``, with the changes.

    When ``outcome.result`` is ``refused``, ``change.problems`` has every reason, and the previous
    configuration stays in force.
    """

    change: "ChangeView | None" = None


class ChangeView(CompressibleValue):
    """The changes that a configuration makes to pods, plans and settings of the service, and the
    problems for which it is refused. Answer of the Service's query ``preview`` (ServiceInput),
    which adds the plans as they would begin."""

    pods: tuple[PodChange, ...] = ()
    plans: tuple[PlanChange, ...] = ()
    settings: tuple[FieldChange, ...] = ()
    problems: tuple[Reason, ...] = ()
    deploy: PlanView | None = None
    decommission: PlanView | None = None


class ChangeCheck(CompressibleValue):
    """Input of the activity ``check_change``: check whether ``after`` may be deployed while
    ``before`` is in force (None for the first configuration)."""

    before: ServiceSpec | None
    after: ServiceSpec
    plans: tuple[PlanSpec, ...] | None = None
    rollout: Rollout = Rollout()
    deployed_once: bool = False


class ChangeProblems(CompressibleValue):
    """Result of the activity ``check_change``: every reason to refuse the change. ``options``: they
    concern options of the request only, and the configuration itself has no problem."""

    problems: tuple[Reason, ...] = ()
    options: bool = False


class Configurations(CompressibleValue):
    """Answer of the Service's query ``configurations``: the configurations that it keeps, oldest
    first. ``target`` is the id of the configuration in force."""

    configurations: tuple[Configuration, ...] = ()
    target: str = ""


class PodCommand(CompactValue):
    """Argument of the Service's updates and signals ``restart_pod``, ``replace_pod``, ``pause_pod``
    and ``resume_pod``. ``pod`` is an instance (``hello-0``); ``tasks``, for ``pause_pod`` and
    ``resume_pod``, are task names such as ``server`` or ``hello-0-server``; empty: all tasks."""

    pod: str = Field(max_length=300)
    tasks: tuple[str, ...] = Field(default=(), max_length=100)
    by: str = Field(default="", max_length=200)
    reason: str = Field(default="", max_length=500)


class PodCommandMessage(PodCommand, SignalArgument):
    """A pod command that arrives as a signal. A ``malformed`` one has no pod."""


class PodCommandResult(CompactValue):
    """Answer of the pod commands: the pod instance, and the task instances that the command kills
    (behaviour 10.3)."""

    pod: str
    tasks: tuple[str, ...] = ()
    outcome: Outcome


class RetireTask(CompactValue):
    """Argument of the Service's update ``retire_task``: kill a task and never relaunch it.
    Idempotent. ``task_id`` is one launch; empty: the newest launch of ``task``."""

    task: str
    task_id: str = ""


class Retired(CompactValue):
    """Answer of the Service's update ``retire_task``: the task is ``dead``, or is still on
    ``agent`` for ``reason``."""

    dead: bool
    agent: str = ""
    reason: str = ""


class EraseTask(CompactValue):
    """Argument of the Service's update ``erase_task``: delete the record of a task. Idempotent.
    With the last task of a pod instance its reservation is deleted from the state as well, which
    lets the Pool release it."""

    task: str


class Released(CompactValue):
    """Signal ``released`` to a Service: the Pool has released this reservation. ``reservation`` is
    its id; empty: any under the key."""

    key: str
    reservation: str = ""


class PodView(CompactValue):
    """A pod instance with the newest record of each of its tasks.

    ``shown`` is the displayed status by task name: the task's state, or PAUSED, PAUSING,
    DECOMMISSIONED, DECOMMISSIONING (behaviour 6.8). ``wanted``: the target configuration has this
    instance.
    """

    name: str
    type: str
    index: int
    agent: str = ""
    hostname: str = ""
    reservation: Reservation | None = None
    tasks: tuple[TaskRecord, ...] = ()
    shown: dict[str, str] = {}
    wanted: bool = True

    def with_texts_of(self, limit: int) -> "PodView":
        """Return the view with what its tasks said cut to ``limit`` characters."""
        return self.but(tasks=tuple(task.with_texts_of(limit) for task in self.tasks))


class ServiceStatus(OwnerStatus):
    """Answer of the Service's query ``status``. ``tasks`` and ``running`` are numbers.
    ``strangers`` run under this service's name, and it has no memory of launching them."""

    pool: str
    tasks: int = 0
    running: int = 0
    leases: tuple[Lease, ...] = ()
    strangers: tuple[TaskRef, ...] = ()


class Pods(CompressibleValue):
    """Answer of the Service's query ``pods``."""

    pods: tuple[PodView, ...] = ()

    def shorter_forms(self) -> Iterator["Pods"]:
        for limit in TEXT_LIMITS:
            yield self.but(pods=tuple(pod.with_texts_of(limit) for pod in self.pods))


class Tasks(CompressibleValue):
    """Answer of the Service's query ``tasks``."""

    tasks: tuple[TaskRecord, ...] = ()

    def shorter_forms(self) -> Iterator["Tasks"]:
        for limit in TEXT_LIMITS:
            yield self.but(tasks=tuple(task.with_texts_of(limit) for task in self.tasks))


class ServiceState(CompactValue):
    """The state that a Service carries over when it continues as new.

    ``pending_kills`` are tasks that it has still to kill; ``rejected`` are the reasons for which
    the newest configuration was refused; ``updates``: its plans are those of a service that was
    deployed before (behaviour 5.4); ``lost_agents``: the time at which each agent was last LOST.
    ``replaced``: launches without a record that may still run; ``strangers``: tasks that run under
    this service's name and that it never launched, as far as it knows.
    """

    owner: OwnerState = OwnerState()
    configs: tuple[Configuration, ...] = ()
    target: str = ""
    tasks: dict[str, TaskRecord] = {}
    reservations: dict[str, Reservation] = {}
    overrides: dict[str, GoalOverride] = {}
    lost_agents: dict[str, datetime] = {}
    replaced: tuple[str, ...] = ()
    strangers: dict[str, TaskStatus] = {}
    leases: LeaseState = LeaseState()
    recovery: RecoveryState = RecoveryState()
    deployed_once: bool = False
    updates: bool = False
    rejected: tuple[str, ...] = ()
    pending_kills: tuple[TaskRef, ...] = ()

    def with_texts_of(self, limit: int) -> "ServiceState":
        """Return the state with what tasks said cut to ``limit`` characters."""
        tasks = {name: task.with_texts_of(limit) for name, task in self.tasks.items()}
        strangers = {
            key: status.but(message=shortened(status.message, limit))
            for key, status in self.strangers.items()
        }
        return self.but(tasks=tasks, strangers=strangers)


class ConfigQuery(CompactValue):
    """Argument of the Service's query ``config``, whose answer is a ServiceSpec. Empty: the
    target."""

    config_id: str = ""


class PreparePodInput(CompactValue):
    """Input of the activity ``prepare_pod``: reserve resources for a pod, and record its launch.

    Task ids are made of ``attempt`` and of the reservation: they are new for each attempt, and the
    same for each retry of an attempt that gets the same reservation. ``config_id`` is the
    configuration to launch; empty: the context's, or else the target.
    """

    context: OwnerContext
    pods: PodContext
    step: str = Field(description="the workflow that receives the tasks' statuses")
    element: str = Field(description="plan/phase/step, for operators")
    pod: str
    index: int
    tasks: tuple[str, ...]
    attempt: str
    config_id: str = ""
    asked: AwareDatetime | None = Field(default=None, description="when the attempt began")


class PreparedTask(CompactValue):
    """A task to start. ``goal`` and ``readiness_check`` decide when it is complete; a ``paused``
    task has no checks, and never finishes (behaviour 6.8)."""

    task_id: str
    task: str
    goal: str
    readiness_check: bool = False
    paused: bool = False


class PreparePodResult(CompactValue):
    """Result of ``prepare_pod``: a reservation with the tasks to start and those to kill first; or
    the refusals, while the pod fits nowhere.

    ``config_id`` is the configuration that the launch was recorded with; ``in_use`` are the
    resource sets that other tasks of the pod still use.
    """

    reservation: Reservation | None = None
    refusals: tuple[Refusal, ...] = ()
    in_use: tuple[str, ...] = ()
    tasks: tuple[PreparedTask, ...] = ()
    kill: tuple[TaskRef, ...] = ()
    config_id: str = ""


def pod_views(book: TaskBook, spec: ServiceSpec) -> tuple[PodView, ...]:
    """Return all pod instances of the spec, and those beyond it that still have tasks."""
    return tuple(
        _pod_view(book, pod, index, wanted=wanted) for pod, index, wanted in book.instances(spec)
    )


def _pod_view(book: TaskBook, pod: str, index: int, *, wanted: bool) -> PodView:
    tasks = book.of_pod(pod, index)
    reservation = book.reservation_of(pod, index)
    return PodView(
        name=f"{pod}-{index}",
        type=pod,
        index=index,
        agent=reservation.agent if reservation else "",
        hostname=reservation.hostname if reservation else "",
        reservation=reservation,
        tasks=tuple(sorted(tasks, key=lambda record: record.name)),
        shown={record.name: book.shown(record) for record in tasks},
        wanted=wanted,
    )
