"""Small edits of a ledger: each returns a new ledger, or a part of one."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from temporal_plans.domain.cluster.ledger import AgentRecord, Ledger, PendingDestroy
from temporal_plans.domain.cluster.offer import Used
from temporal_plans.domain.cluster.reservations import Reservation

_T = TypeVar("_T")


def without(mapping: Mapping[str, _T], key: str) -> dict[str, _T]:
    """Return the mapping without one key."""
    return {name: value for name, value in mapping.items() if name != key}


def with_agent(ledger: Ledger, record: AgentRecord) -> Ledger:
    """Put an agent's record, with its share computed again."""
    record = record.but(share=record.offer.share)
    return ledger.but(agents={**ledger.agents, record.info.id: record})


def with_used(ledger: Ledger, agent: str, change: Callable[[Used], Used]) -> Ledger:
    """Change the total of what is reserved on an agent."""
    record = ledger.agents[agent]
    return with_agent(ledger, record.but(used=change(record.used)))


def with_pending_destroy(ledger: Ledger, held: Reservation, *, counted: bool) -> Ledger:
    """Add a pending destroy; ``counted``: its resources stay in the agent's total until then."""
    if not counted:
        ledger = with_used(ledger, held.agent, lambda used: used.minus(held.resources))
    pending = PendingDestroy(reservation=held, counted=counted)
    return ledger.but(to_destroy={**ledger.to_destroy, held.id: pending})


def held_on(ledger: Ledger, agent: str) -> Iterator[Reservation]:
    """The reservations on an agent."""
    return (held for held in ledger.reservations.values() if held.agent == agent)


def pending_destroys_on(ledger: Ledger, agent: str) -> Iterator[Reservation]:
    """The released reservations that an agent has yet to destroy."""
    released = (pending.reservation for pending in ledger.to_destroy.values())
    return (reservation for reservation in released if reservation.agent == agent)
