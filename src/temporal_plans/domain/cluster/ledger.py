"""The state of a Pool: its agents, their reservations, and the requirements that wait.

``domain.cluster.pool`` has the rules by which it changes. Running totals are kept per agent
(``Used``), so that evaluating an offer never scans reservations.
"""

from datetime import datetime

from temporal_plans.domain.cluster.agents import AgentInfo, AgentState
from temporal_plans.domain.cluster.offer import Offer, Used
from temporal_plans.domain.cluster.requirements import Requirement
from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.values.model import CompactValue


class AgentRecord(CompactValue):
    """An agent, its state and since when, and the total of what is reserved on it.

    ``share`` is its offer's share, stored so that sorting a thousand agents is cheap.
    """

    info: AgentInfo
    state: AgentState = AgentState.ALIVE
    registered: datetime
    since: datetime
    used: Used = Used()
    share: float = 0.0

    @property
    def offer(self) -> Offer:
        return Offer(self.info, self.state, self.used)


class WaitingRequirement(CompactValue):
    """A requirement that fitted nowhere when it arrived. ``others`` are the workflows that
    requested the same pod before; they may have ended, or still wait."""

    requirement: Requirement
    since: datetime
    others: tuple[str, ...] = ()


class PendingDestroy(CompactValue):
    """A released reservation that its agent has not destroyed yet.

    ``counted``: its resources are still in the agent's total. They are not when its successor on
    the same agent took them over; that successor is notified only when this one
    is destroyed.
    """

    reservation: Reservation
    counted: bool = True


class DepartedAgent(CompactValue):
    """The reservations, by name only, that an agent removed by force may still have on its disks.
    If the same agent (``lineage``) registers again, it destroys them."""

    lineage: str = ""
    reservations: tuple[Reservation, ...] = ()


class Ledger(CompactValue):
    """The whole state of a Pool. ``serial`` grows with every reservation made.

    ``reservations`` and ``waiting`` are by reservation key, ``waiting`` in order of arrival;
    ``notify`` is, by key, the workflow that asked last; ``to_destroy`` is by reservation id. A key
    can be in both: it keeps what it holds while it waits for more, or for a new place. ``offers``
    are, by key, the ids of reservations that were made for waiting requirements and that no
    workflow has taken yet. ``departed`` is by agent, the oldest first, and bounded: only cleaning
    up depends on it.
    """

    pool: str = "default"
    serial: int = 0
    agents: dict[str, AgentRecord] = {}
    reservations: dict[str, Reservation] = {}
    notify: dict[str, str] = {}
    waiting: dict[str, WaitingRequirement] = {}
    offers: dict[str, str] = {}
    to_destroy: dict[str, PendingDestroy] = {}
    departed: dict[str, DepartedAgent] = {}
