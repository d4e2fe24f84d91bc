"""Messages between steps, the Service, the Pool and the agents, about agents and reservations."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from temporal_plans.domain.cluster.agents import AgentInfo, AgentState
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import AgentId, CompactValue, Duration, Name
from temporal_plans.domain.values.refusal import Refusal

# --- activities on the plans queue -------------------------------------------------------------


class ReserveInput(CompactValue):
    """Input of the activity ``reserve``: the requirement of one pod instance, for one pool."""

    pool: str
    requirement: Requirement


class ReserveResult(CompactValue):
    """Result of ``reserve``: a reservation, or a refusal for each agent while the requirement
    waits.

    As soon as a waiting requirement fits, the Pool makes the reservation and signals ``offered``
    (OfferedMessage) to ``requirement.notify``. ``at`` is the Pool's time.
    """

    reservation: Reservation | None = None
    refusals: tuple[Refusal, ...] = ()
    at: datetime | None = None


class ReleaseInput(CompactValue):
    """Input of the activity ``release``: release a reservation, or cancel a waiting requirement.

    ``reservation``: release only the reservation with this id (empty: any under the key).
    ``destroy``: its agent kills the tasks there and deletes the volumes, unless the agent is lost.
    An unknown key is no error.
    """

    pool: str
    key: str
    reservation: str = ""
    destroy: bool = True


# --- the Pool workflow -------------------------------------------------------------------------


class PoolInput(CompressibleValue):
    """Input of the workflow ``Pool``; every field has a default, so ``{}`` or no input will do.

    ``heartbeat``: an agent without heartbeat for that long is UNREACHABLE; ``give_up``: an agent
    that is UNREACHABLE for that long is LOST. ``check_owners_every``: the interval at which owners
    are asked which reservations they still hold; reservations younger than ``grace`` are kept.
    After ``history_limit`` events the Pool continues as new, with its ``ledger``, which is
    ``packed`` (domain.cluster.packing) when large.
    """

    name: str = ""
    heartbeat: Duration = timedelta(seconds=5)
    give_up: Duration = timedelta(seconds=60)
    check_owners_every: Duration = timedelta(seconds=60)
    grace: Duration = timedelta(seconds=30)
    history_limit: int = 4000
    ledger: Ledger | None = None
    packed: str = ""

    def shorter_forms(self) -> Iterator["PoolInput"]:
        if self.ledger is not None:  # requirements that wait are requested again
            yield self.but(ledger=self.ledger.but(waiting={}))


class HeardMessage(CompactValue):
    """Signal ``heard`` to the Pool when an agent starts its activity ``watch``: the agent is alive.
    ``boot`` identifies the agent's process."""

    agent: AgentId
    boot: Name = ""


class ReservationKey(CompactValue):
    """Argument of the Pool's query ``explain``. See ``reservation_key``."""

    key: str


class Withdrawal(CompactValue):
    """Argument of the Pool's signal ``withdraw``: cancel the waiting requirement of a key, if the
    workflow ``notify`` waits for it (empty: any workflow)."""

    key: str
    notify: str = ""


class ReleaseRequest(CompactValue):
    """Argument of the Pool's update ``release``.

    ``reservation``: release only the reservation with this id (empty: any under the key).
    ``destroy``: the agent kills the tasks there and deletes the volumes; until it has, the
    resources are not offered again.
    """

    key: str
    reservation: str = ""
    destroy: bool = True


class ReleaseResult(CompactValue):
    """Answer of the Pool's update ``release``.

    ``reservation`` is the released reservation, None when the key had none. ``destroyed`` is false
    while the agent is still destroying it; repeat the update to wait. ``agent`` is the agent that
    has still to destroy the reservation, released by this or by an earlier update; "" when nothing
    is left to destroy. An agent whose ``agent_state`` is not ALIVE destroys it when it is back, or
    never if it is removed (update ``deregister``); waiting for that is of no use.
    """

    reservation: Reservation | None = None
    destroyed: bool = True
    agent: str = ""
    agent_state: AgentState | None = None


class DeregisterRequest(CompactValue):
    """Argument of the Pool's update ``deregister``: remove an agent permanently. Refused while it
    has reservations, unless ``force``, which notifies their owners that the agent is lost."""

    agent: str
    force: bool = False


class DeregisterResult(CompressibleValue):
    """Answer of the Pool's update ``deregister``. ``dropped`` are the keys of the reservations that
    were removed with the agent. ``alive``: the agent's process was still running, and registers
    again as a new agent unless it is stopped."""

    dropped: tuple[str, ...] = ()
    alive: bool = False


class RequirementStatus(CompressibleValue):
    """Answer of the Pool's query ``explain``: the reservation of a key, or why its requirement
    waits, with a refusal for each agent."""

    reservation: Reservation | None = None
    waiting: bool = False
    refusals: tuple[Refusal, ...] = ()


class OwnersInput(CompressibleValue):
    """Input of the activity ``check_owners``: ids of workflows with reservations or
    requirements."""

    workflows: tuple[str, ...] = ()


class Holdings(CompressibleValue):
    """Keys of reservations. Answer of the Service's queries ``holdings``, the reservations that it
    keeps, and ``wanted``, those that its pods have or need."""

    keys: tuple[str, ...] = ()


class OwnersReport(CompressibleValue):
    """Result of the activity ``check_owners``, and argument of the Pool's update ``reconcile``.

    ``gone`` are closed or unknown workflows; ``holdings`` are the answers of running Services. A
    workflow that did not answer is in neither.
    """

    gone: tuple[str, ...] = ()
    holdings: dict[str, Holdings] = {}


class Reconciled(CompressibleValue):
    """Answer of the Pool's update ``reconcile`` (OwnersReport): the keys of the reservations that
    were released because no owner holds them. Their agents destroy them when they can."""

    keys: tuple[str, ...] = ()


class OfferedMessage(CompactValue):
    """Signal ``offered`` to the workflow that waits: its requirement has a reservation, or may get
    one. In both cases the workflow repeats its ``reserve``."""

    reservation: Reservation | None = None


class AgentLostMessage(CompactValue):
    """Signal ``agent_lost`` to every owner of reservations on an agent that is LOST.

    ``by_operator``: an operator removed the agent; its reservations are removed, and its tasks are
    GONE_BY_OPERATOR (behaviour 6.2).
    """

    agent: AgentId
    pool: Name
    at: datetime
    by_operator: bool = False


class AgentView(CompactValue):
    """An agent as ``temporal plan agents`` shows it. Cpus and gpus are in cores, memory and disk in
    MB; ``reservations`` is their number."""

    info: AgentInfo
    state: AgentState
    registered: datetime
    free_cpus: float
    free_memory: int
    free_gpus: float = 0.0
    free_disk: int = 0
    reservations: int = 0


class PoolStatus(CompressibleValue):
    """Answer of the Pool's query ``status``. Long lists are cut, because an answer has at most
    2 MiB; ``reserved`` and ``queued`` are the numbers of all reservations and waiting
    requirements."""

    name: str
    agents: tuple[AgentView, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    waiting: tuple["WaitingView", ...] = ()
    reserved: int = 0
    queued: int = 0


class WaitingView(CompactValue):
    """A requirement that fits nowhere yet, with the current refusal of each agent."""

    requirement: Requirement
    since: datetime
    refusals: tuple[Refusal, ...] = ()


# --- the agent's activities, on the agent's own task queue --------------------------------------


class WatchInput(CompactValue):
    """Input of the agent's activity ``watch``, by which the Pool knows that the agent is alive.

    The activity signals ``heard`` (HeardMessage) to the Pool when it starts, heartbeats well within
    ``heartbeat``, and ends only when it is cancelled or the agent stops.
    """

    agent: str
    pool: str
    heartbeat: Duration
    boot: str = ""


class DestroyInput(CompactValue):
    """Input of the agent's activity ``destroy``: kill the tasks on a reservation, and delete its
    volumes and sandboxes."""

    reservation_id: str
