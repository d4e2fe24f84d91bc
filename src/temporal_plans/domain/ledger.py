"""What a Pool knows: its agents, what is reserved on them, and who waits.

The one state of the workflow ``Pool``; ``domain.pool`` says how it changes. Running totals are kept
per agent (``Used``), so that looking at an offer never scans reservations.
"""

from datetime import datetime

from temporal_plans.domain.cluster import AgentInfo, AgentState, Requirement, Reservation
from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.offer import Offer, Used


class AgentRecord(CompactValue):
    """An agent, since when it is in its state, and the total of what is reserved on it.

    ``share`` is that of its offer, kept so that ordering a thousand agents is cheap.
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


class Waiting(CompactValue):
    """A requirement that fitted nowhere when it came. ``others`` asked before it for the same pod:
    workflows that may have ended, or still wait."""

    requirement: Requirement
    since: datetime
    others: tuple[str, ...] = ()


class Condemned(CompactValue):
    """A reservation given up that its agent has not destroyed yet.

    ``counted``: its resources are still in the agent's total. They are not when its successor on
    the same agent took them over; that successor is told only when this is destroyed.
    """

    reservation: Reservation
    counted: bool = True


class Departed(CompactValue):
    """What an agent that was removed by force may still have on its disks: reservations, of which
    only the names are kept. Should the same agent (``lineage``) register again, it destroys them.
    """

    lineage: str = ""
    reservations: tuple[Reservation, ...] = ()


class Ledger(CompactValue):
    """The whole state of a Pool. ``serial`` grows with every reservation made.

    ``reservations`` and ``waiting`` are by reservation key, ``waiting`` in order of arrival;
    ``notify`` is, by key, the workflow that asked last; ``condemned`` is by reservation id.
    A key can be in both: it keeps what it holds while it waits for more, or for a new place.
    ``offers`` are the ids of reservations that were made for who waited, and that nobody has taken
    yet, by key. ``departed`` is by agent, the oldest first, and bounded: nothing depends on it but
    tidiness.
    """

    pool: str = "default"
    serial: int = 0
    agents: dict[str, AgentRecord] = {}
    reservations: dict[str, Reservation] = {}
    notify: dict[str, str] = {}
    waiting: dict[str, Waiting] = {}
    offers: dict[str, str] = {}
    condemned: dict[str, Condemned] = {}
    departed: dict[str, Departed] = {}
