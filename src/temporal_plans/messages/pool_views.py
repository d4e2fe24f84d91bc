"""Views of a Pool's ledger: the answers of its queries, and the table in Temporal's own UI."""

from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from temporal_plans.domain.cluster import pool
from temporal_plans.domain.cluster.agents import AgentState
from temporal_plans.domain.cluster.ledger import AgentRecord, Ledger
from temporal_plans.domain.cluster.offer import cores
from temporal_plans.domain.cluster.refusals import ALL_AGENTS, does_not_fit
from temporal_plans.domain.values.refusal import Refusal
from temporal_plans.messages.pools import AgentView, PoolStatus, RequirementStatus, WaitingView

REFUSAL_LIMIT = 50
"""Refusals in one answer of ``reserve`` or ``status``; the query ``explain`` returns all."""

RESERVATION_LIMIT = 1000
WAITING_LIMIT = 50
"""Entries that the answer of ``status`` lists; its counts include all."""

TABLE_ROW_LIMIT = 50
"""Rows of the table of agents."""


def status(ledger: Ledger, now: datetime) -> PoolStatus:
    """Return the Pool's content, with the refusals of the waiting requirements."""
    reasons: dict[object, tuple[Refusal, ...]] = {}  # evaluated once for equal requirements
    views: list[WaitingView] = []
    for key, waiting in islice(ledger.waiting.items(), WAITING_LIMIT):
        fit = pool.fit_key(ledger, waiting.requirement) or key
        if fit not in reasons:
            reasons[fit] = shortened(pool.explain(ledger, waiting.requirement, now))
        views.append(
            WaitingView(requirement=waiting.requirement, since=waiting.since, refusals=reasons[fit])
        )
    return PoolStatus(
        name=ledger.pool,
        agents=tuple(_agent(record) for record in ledger.agents.values()),
        reservations=tuple(islice(ledger.reservations.values(), RESERVATION_LIMIT)),
        waiting=tuple(views),
        reserved=len(ledger.reservations),
        queued=len(ledger.waiting),
    )


def explanation(ledger: Ledger, key: str, now: datetime) -> RequirementStatus:
    """Return the reservation of a key, and whether and why its requirement waits. An unknown key
    has neither."""
    waiting = ledger.waiting.get(key)
    return RequirementStatus(
        reservation=ledger.reservations.get(key),
        waiting=waiting is not None,
        refusals=pool.explain(ledger, waiting.requirement, now) if waiting else (),
    )


def shortened(refusals: Sequence[Refusal]) -> tuple[Refusal, ...]:
    """Return the first refusals, and a refusal of agent ``*`` with the number of the others."""
    if len(refusals) <= REFUSAL_LIMIT:
        return tuple(refusals)
    more = f"{len(refusals) - REFUSAL_LIMIT} more agents; the Pool's query explain lists all"
    return (*refusals[:REFUSAL_LIMIT], does_not_fit(ALL_AGENTS, [("pool", more)]))


def table(ledger: Ledger) -> str:
    """Return the agents as a markdown table, those that are not ALIVE first."""
    if not ledger.agents:
        return f"No agents. {len(ledger.waiting)} waiting."
    rows = sorted(
        ledger.agents.values(),
        key=lambda record: (record.state is AgentState.ALIVE, record.info.id),
    )
    lines = [
        "| agent | state | free cpus | free memory | free disk | pods |",
        "|---|---|---|---|---|---|",
        *(_row(record) for record in rows[:TABLE_ROW_LIMIT]),
    ]
    if len(rows) > TABLE_ROW_LIMIT:
        lines.append(f"\nand {len(rows) - TABLE_ROW_LIMIT} more agents")
    counts = f"{len(ledger.reservations)} reservations, {len(ledger.waiting)} waiting"
    if ledger.to_destroy:
        counts += f", {len(ledger.to_destroy)} being destroyed"
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
