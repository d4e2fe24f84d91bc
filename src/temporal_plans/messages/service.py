"""What crosses between a Service, its plans and their phases, and what is read of a Service."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from temporal_plans.domain.backoff import Backoff
from temporal_plans.domain.cluster import Reservation
from temporal_plans.domain.commands import Command, Outcome, Verb
from temporal_plans.domain.leases import Lease as Lease
from temporal_plans.domain.leases import LeaseState as LeaseState
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.plan import PlanSpec
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.status import Status
from temporal_plans.domain.task import TaskStatus
from temporal_plans.messages.cluster import TaskRef, TaskStatuses
from temporal_plans.messages.plan import CommandLog, PlanInput


class ServiceInput(CompactValue):
    """Input of the Service workflow: what to deploy, and where.

    ``plans`` replaces what would be generated from ``spec``. ``state`` is the engine's own, and so
    is ``history_limit``: events after which it continues as new.
    """

    spec: ServiceSpec
    pool: str = "default"
    backoff: Backoff = Backoff()
    plans: tuple[PlanSpec, ...] | None = None
    state: "ServiceState | None" = None
    history_limit: int = Field(default=4000, ge=50)


class TaskRecord(CompactValue):
    """The newest launch of one task. ``owner`` is the workflow that follows it, empty when nobody
    does any more; ``kills`` are the launches that had to make room for it."""

    task_id: str
    name: str
    pod: str
    index: int
    task: str
    goal: str
    resource_set: str
    agent: str
    hostname: str
    config_id: str
    owner: str
    step: str
    launched: datetime
    status: TaskStatus | None = None
    kills: tuple[TaskRef, ...] = ()

    @property
    def ref(self) -> TaskRef:
        return TaskRef(task_id=self.task_id, agent=self.agent)

    @property
    def live(self) -> bool:
        """Not known to have ended."""
        return self.status is None or not self.status.state.terminal


class PlanRecord(CompactValue):
    """A plan of a service, as the service knows it. ``run`` counts how often it was started."""

    name: str
    workflow_id: str
    priority: int
    status: Status = Status.PENDING
    run: int = 0
    open: bool = False
    changed: datetime | None = None


class LeaseRequest(CompactValue):
    """Signal ``leases`` from a Phase to its Service: assets wanted, and steps that give theirs
    back. ``ended``: the Phase is over and gives all back."""

    phase: str
    wants: tuple[Lease, ...] = ()
    returns: tuple[int, ...] = ()
    ended: bool = False


class LeaseGrant(CompactValue):
    """Signal ``leased`` from the Service to a Phase: steps that have their asset now, and those
    that wait, with who holds it (step index -> plan/phase). ``granted``: step index -> ticket."""

    granted: dict[int, int] = {}
    held: dict[int, str] = {}


class PlanReport(CompactValue):
    """Signal ``plan_changed`` from a Plan to its Service. ``open`` is false at its end."""

    plan: str
    workflow_id: str
    status: Status
    open: bool = True


class StartPlan(Command):
    """Argument of the Service's update ``start_plan``: run a plan that has ended again.

    It goes on from where it ended, with this command: ``start``, or ``restart`` of it all, of a
    phase or of a step.
    """

    plan: str
    verb: Literal[Verb.START, Verb.RESTART] = Verb.START


class PlanStart(CompactValue):
    """Input of the activity ``start_plan``; idempotent by ``run``."""

    workflow_id: str
    run: int
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

    owner: str
    task_ids: tuple[str, ...]


class DeployResult(CompactValue):
    """Answer of the Service's update ``deploy``: the config in force, and its deploy plan."""

    config_id: str
    plan: str
    outcome: Outcome


class PodView(CompactValue):
    """A pod instance with its tasks' newest records."""

    name: str
    type: str
    index: int
    agent: str = ""
    hostname: str = ""
    reservation: Reservation | None = None
    tasks: tuple[TaskRecord, ...] = ()


class ServiceStatus(CompactValue):
    """Answer of the Service's query ``status``."""

    name: str
    config_id: str
    pool: str
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


class Unsent(CompactValue):
    """A signal that a run of the Service left to the next one. It may arrive twice."""

    receiver: str
    signal: str
    message: LeaseGrant | TaskStatuses


class ServiceState(CompactValue):
    """What a Service carries from run to run. ``zombies`` are tasks that it has yet to kill."""

    configs: dict[str, ServiceSpec] = {}
    target: str = ""
    tasks: dict[str, TaskRecord] = {}
    reservations: dict[str, Reservation] = {}
    plans: dict[str, PlanRecord] = {}
    leases: LeaseState = LeaseState()
    deployed_once: bool = False
    log: CommandLog = CommandLog()
    unsent: tuple[Unsent, ...] = ()
    zombies: tuple[TaskRef, ...] = ()
