"""What crosses between steps, the Service, the Pool and the agents."""

from datetime import datetime, timedelta

from temporal_plans.domain.cluster import AgentInfo, AgentState, Refusal, Requirement, Reservation
from temporal_plans.domain.ledger import Ledger
from temporal_plans.domain.model import CompactValue, Duration, WorkflowId
from temporal_plans.domain.service import PodSpec
from temporal_plans.domain.task import TaskRef as TaskRef
from temporal_plans.domain.task import TaskStatus

# --- names that both sides must agree on -------------------------------------------------------

PLANS_QUEUE = "plans"
"""The task queue of workflows and of the activities that only talk to Temporal."""


def agent_queue(agent: str) -> str:
    """The task queue that only this agent's process polls."""
    return f"agent/{agent}"


def pool_id(pool: str) -> str:
    return f"pool/{pool}"


def service_id(service: str) -> str:
    return f"service/{service.strip('/')}"


# --- activities on the plans queue -------------------------------------------------------------


class ReserveInput(CompactValue):
    """Input of the activity ``reserve``: one pod's requirement, asked of one pool."""

    pool: str
    requirement: Requirement


class ReserveResult(CompactValue):
    """Either a reservation, or the reasons per agent while the requirement waits in the pool.

    When waiting, the Pool signals ``offered`` (OfferedMessage) to ``requirement.notify`` as soon
    as the requirement fits; it holds the reservation from then on. ``at`` is the Pool's time.
    """

    reservation: Reservation | None = None
    refusals: tuple[Refusal, ...] = ()
    at: datetime | None = None


class ReleaseInput(CompactValue):
    """Input of the activity ``release``: give a reservation, or a waiting requirement, up.

    ``reservation``: the id of the one that is meant; another under the key is left alone. Volumes
    on the agent are destroyed unless the agent is lost. Releasing what is not held is fine.
    """

    pool: str
    key: str
    reservation: str = ""
    destroy: bool = True


# --- the Pool workflow -------------------------------------------------------------------------


class PoolInput(CompactValue):
    """Input of the workflow ``Pool``; every field has a default, so ``{}`` or nothing starts one.

    ``heartbeat``: an agent silent for that long is UNREACHABLE; ``give_up``: one unreachable for
    that long is LOST. ``check_owners_every``: how often owners are asked whether they still hold
    what they reserved; nothing younger than ``grace`` is taken from them. After ``history_limit``
    events the Pool continues as new, with its ``ledger``, ``packed`` (domain.packing) when large.
    """

    name: str = ""
    heartbeat: Duration = timedelta(seconds=5)
    give_up: Duration = timedelta(seconds=60)
    check_owners_every: Duration = timedelta(seconds=60)
    grace: Duration = timedelta(seconds=30)
    history_limit: int = 4000
    ledger: Ledger | None = None
    packed: str = ""


class HeardMessage(CompactValue):
    """Signal ``heard`` to the Pool, when an agent starts the activity ``watch``: it is alive."""

    agent: str
    boot: str = ""


class ReservationKey(CompactValue):
    """Argument of the Pool's query ``explain``. See ``reservation_key``."""

    key: str


class Withdrawal(CompactValue):
    """Argument of the Pool's signal ``withdraw``: a requirement that waits is given up, that of the
    workflow ``notify``, or all of the key when that is empty."""

    key: str
    notify: str = ""


class ReleaseRequest(CompactValue):
    """Argument of the Pool's update ``release``. ``reservation``: the id of the one that is meant;
    another under the key is left alone (empty: any). ``destroy``: the agent kills what runs there
    and deletes its volumes; until it has, the resources are not offered to others."""

    key: str
    reservation: str = ""
    destroy: bool = True


class ReleaseResult(CompactValue):
    """``reservation``: what was given up, None when nothing was held under the key.
    ``destroyed`` is false while its agent is still at it: ask again.

    ``agent`` has yet to destroy what was given up, now or at an earlier asking; "" when nothing is
    left to destroy. When its ``agent_state`` is not ALIVE, it does so once it is back, or never if
    it is removed (update ``deregister``); there is nothing to wait for meanwhile.
    """

    reservation: Reservation | None = None
    destroyed: bool = True
    agent: str = ""
    agent_state: AgentState | None = None


class DeregisterRequest(CompactValue):
    """Argument of the Pool's update ``deregister``: an agent leaves for good. Refused while it has
    reservations, unless ``force``: their owners are then told that the agent is lost."""

    agent: str
    force: bool = False


class DeregisterResult(CompactValue):
    """The keys of the reservations that were dropped with the agent. ``alive``: its process was
    still running, and will register again as a new one unless it is stopped."""

    dropped: tuple[str, ...] = ()
    alive: bool = False


class Explanation(CompactValue):
    """Answer of the Pool's query ``explain``: what a key holds, or why it waits, agent by agent."""

    reservation: Reservation | None = None
    waiting: bool = False
    refusals: tuple[Refusal, ...] = ()


class OwnersInput(CompactValue):
    """Input of the activity ``check_owners``: workflow ids that own reservations or wait."""

    workflows: tuple[str, ...] = ()


class Holdings(CompactValue):
    """Keys of reservations. Answer of the Service's queries ``holdings``, those that it keeps, and
    ``wanted``, those that its pods have, or are to have."""

    keys: tuple[str, ...] = ()


class OwnersReport(CompactValue):
    """Result of ``check_owners``. ``gone``: closed or unknown workflows. ``holdings``: what running
    Services name; one that did not answer is in neither."""

    gone: tuple[str, ...] = ()
    holdings: dict[str, Holdings] = {}


class OfferedMessage(CompactValue):
    """Signal ``offered`` to the workflow that waits: its requirement now has a reservation, or may
    have one if it asks again. It asks again in both cases."""

    reservation: Reservation | None = None


class AgentLostMessage(CompactValue):
    """Signal ``agent_lost`` to every owner of reservations on an agent that was given up.

    ``by_operator``: somebody removed it for good; the reservations are dropped, its tasks are
    GONE_BY_OPERATOR (reference 6.2).
    """

    agent: str
    pool: str
    at: datetime
    by_operator: bool = False


class AgentView(CompactValue):
    """An agent as ``temporal plan agents`` shows it."""

    info: AgentInfo
    state: AgentState
    registered: datetime
    free_cpus: float
    free_memory: int
    free_gpus: float = 0.0
    free_disk: int = 0
    reservations: int = 0


class PoolStatus(CompactValue):
    """Answer of the Pool's query ``status``. Of very many only the first are listed, since one
    answer has 2 MiB at most; ``reserved`` and ``queued`` count all."""

    name: str
    agents: tuple[AgentView, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    waiting: tuple["WaitingView", ...] = ()
    reserved: int = 0
    queued: int = 0


class WaitingView(CompactValue):
    """A requirement that fits nowhere yet, with today's reasons per agent."""

    requirement: Requirement
    since: datetime
    refusals: tuple[Refusal, ...] = ()


# --- the agent's activities, on the queue agent/<id> -------------------------------------------


class WatchInput(CompactValue):
    """Input of the agent's activity ``watch``, which is the agent's life sign.

    It signals ``heard`` (HeardMessage) to the Pool when it starts, heartbeats well within
    ``heartbeat`` and ends only when it is cancelled or the agent stops.
    """

    agent: str
    pool: str
    heartbeat: Duration
    boot: str = ""


class TaskLaunch(CompactValue):
    """A task to start, under an id that is used once.

    ``paused``: the agent runs the pause command in place of the task's own, without its checks
    (reference 6.8).
    """

    task_id: str
    task: str
    paused: bool = False


class LaunchInput(CompactValue):
    """Input of the agent's activity ``launch``; idempotent by task id.

    The pod's spec comes from the Service ``report_to`` (its query ``config``, cached by
    ``config_id``), or is ``inline``. Statuses go as signal ``task_statuses`` to ``report_to``.
    ``parameters`` are plan parameters: extra environment of all tasks launched here.
    """

    service: str
    report_to: str = ""
    config_id: str = ""
    inline: PodSpec | None = None
    pod: str
    index: int
    reservation: Reservation
    tasks: tuple[TaskLaunch, ...]
    parameters: dict[str, str] = {}
    step: str = ""


class TaskStatuses(CompactValue):
    """Statuses in order: the result of ``launch``, ``kill`` and ``run_task``, and the signal
    ``task_statuses`` to a Service, and from it to a step."""

    statuses: tuple[TaskStatus, ...] = ()


class KillInput(CompactValue):
    """Input of the agent's activity ``kill``: returns when they are dead; unknown ids are fine.

    ``grace`` overrides the tasks' own kill-grace-period.
    """

    task_ids: tuple[str, ...]
    grace: Duration | None = None
    reason: str = ""


class DestroyInput(CompactValue):
    """Input of the agent's activity ``destroy``: kill what runs on a reservation, delete its
    volumes and sandboxes."""

    reservation_id: str


class ReadLogInput(CompactValue):
    """Input of the agent's activity ``read_log``: a piece of a task's stdout or stderr.

    ``offset`` in bytes, negative from the end. With ``wait`` the answer is held until there is
    something to read, the task has ended, or that time has passed.
    """

    task_id: str
    stream: str = "stdout"
    offset: int = 0
    limit: int = 65536
    wait: Duration | None = None


class LogChunk(CompactValue):
    """``ended``: the task is over and everything was read up to ``next_offset``."""

    text: str = ""
    next_offset: int = 0
    ended: bool = False


# --- the Service workflow ----------------------------------------------------------------------


class ConfigQuery(CompactValue):
    """Argument of the Service's query ``config`` -> ServiceSpec. Empty: the target."""

    config_id: str = ""


class LaunchIntent(CompactValue):
    """Argument of the Service's update ``record_launch``, made before anything is started.

    ``owner`` is the workflow that gets the statuses of these tasks. ``asked`` is when the step
    wanted it: a launch that the step wanted later is not replaced, however late this one comes.
    ``reserved`` is when the Pool said so: if it gave the agent up since, the update is refused with
    AGENT_LOST, and is to be made anew with what the Pool says then; the error's detail is whether
    the Service has kept that reservation from a launch before.
    """

    owner: WorkflowId
    step: str
    pod: str
    index: int
    config_id: str
    reservation: Reservation
    tasks: tuple[TaskLaunch, ...]
    asked: datetime | None = None
    reserved: datetime | None = None


AGENT_LOST = "AgentLost"
"""The type of the error that refuses a launch on an agent that was given up since."""


class LaunchOrder(CompactValue):
    """Answer of ``record_launch``: the tasks in the way, to be killed before the launch, and the
    names of the tasks that are to be launched paused (an operator's override, reference 6.8).
    ``config_id``: what is on record for this launch; empty: what was asked."""

    kill: tuple[TaskRef, ...] = ()
    paused: tuple[str, ...] = ()
    config_id: str = ""
