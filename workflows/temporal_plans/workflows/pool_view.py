"""How a Pool's ledger is shown: the answers of its queries, and the table in Temporal's own UI."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from temporal_plans.domain import pool
from temporal_plans.domain.cluster import AgentState, Refusal
from temporal_plans.domain.ledger import AgentRecord, Ledger
from temporal_plans.domain.offer import cores
from temporal_plans.messages.cluster import AgentView, Explanation, PoolStatus, WaitingView

SHOWN_REFUSALS = 50
"""Refusals in one answer of ``reserve`` or ``status``; the query ``explain`` gives all."""

SHOWN_RESERVATIONS = 1000
SHOWN_WAITING = 50
"""How many the answer of ``status`` lists; it counts all."""

SHOWN_AGENTS = 50
"""Rows of the table of agents."""


def status(ledger: Ledger, now: datetime) -> PoolStatus:
    """Everything in the Pool, with the reasons why those that wait do."""
    reasons: dict[object, tuple[Refusal, ...]] = {}  # evaluated once for all that are alike
    waiting: list[WaitingView] = []
    for key, one in islice(ledger.waiting.items(), SHOWN_WAITING):
        likeness = pool.likeness(ledger, one.requirement) or key
        if likeness not in reasons:
            reasons[likeness] = shortened(pool.explain(ledger, one.requirement, now))
        waiting.append(
            WaitingView(requirement=one.requirement, since=one.since, refusals=reasons[likeness])
        )
    return PoolStatus(
        name=ledger.pool,
        agents=tuple(_agent(record) for record in ledger.agents.values()),
        reservations=tuple(islice(ledger.reservations.values(), SHOWN_RESERVATIONS)),
        waiting=tuple(waiting),
        reserved=len(ledger.reservations),
        queued=len(ledger.waiting),
    )


def explanation(ledger: Ledger, key: str, now: datetime) -> Explanation:
    """What a key holds, and whether and why it waits. Unknown keys hold nothing."""
    waiting = ledger.waiting.get(key)
    return Explanation(
        reservation=ledger.reservations.get(key),
        waiting=waiting is not None,
        refusals=pool.explain(ledger, waiting.requirement, now) if waiting else (),
    )


def shortened(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    """The first refusals, and one of agent ``*`` that says how many more there are."""
    if len(refusals) <= SHOWN_REFUSALS:
        return tuple(refusals)
    more = f"{len(refusals) - SHOWN_REFUSALS} more agents; the Pool's query explain lists all"
    return (*refusals[:SHOWN_REFUSALS], Refusal(agent="*", reasons=(("pool", more),)))


def table(ledger: Ledger) -> str:
    """The agents as a small markdown table, those in trouble first."""
    if not ledger.agents:
        return f"No agents. {len(ledger.waiting)} waiting."
    rows = sorted(
        ledger.agents.values(), key=lambda one: (one.state is AgentState.ALIVE, one.info.id)
    )
    lines = [
        "| agent | state | free cpus | free memory | free disk | pods |",
        "|---|---|---|---|---|---|",
        *(_row(record) for record in rows[:SHOWN_AGENTS]),
    ]
    if len(rows) > SHOWN_AGENTS:
        lines.append(f"\nand {len(rows) - SHOWN_AGENTS} more agents")
    counts = f"{len(ledger.reservations)} reservations, {len(ledger.waiting)} waiting"
    if ledger.condemned:
        counts += f", {len(ledger.condemned)} being destroyed"
    return "\n".join([*lines, "", counts])


def _row(record: AgentRecord) -> str:
    offer = record.offer
    return (
        f"| {record.info.id} | {record.state} | {cores(offer.cpus):g} | {offer.memory} MB "
        f"| {offer.disk} MB | {record.used.reservations} |"
    )


def _agent(record: AgentRecord) -> AgentView:
    offer = record.offer
    return AgentView(
        info=record.info,
        state=record.state,
        registered=record.registered,
        free_cpus=cores(offer.cpus),
        free_memory=offer.memory,
        free_gpus=cores(offer.gpus),
        free_disk=offer.disk,
        reservations=record.used.reservations,
    )
