"""Ledgers of small pools, with agents and reservations."""

from datetime import timedelta
from typing import Any

from builders.clock import NOW
from builders.pools import agent, requirement
from temporal_plans.domain.cluster import pool
from temporal_plans.domain.cluster.agents import AgentInfo
from temporal_plans.domain.cluster.ledger import Ledger
from temporal_plans.domain.cluster.requirements import Requirement, SetWant
from temporal_plans.domain.cluster.reservations import Reservation

LATER = NOW + timedelta(minutes=5)
GRACE = timedelta(seconds=30)


def info(name: str, cpus: float = 4, boot: str = "1", queue: str = "", **more: Any) -> AgentInfo:
    fields: dict[str, Any] = {"boot": boot, **({"queue": queue} if queue else {}), **more}
    return agent(name, cpus=cpus, **fields)


def want(index: int = 0, cpus: float = 1, **more: Any) -> Requirement:
    sets = more.pop("sets", (SetWant(id="s", cpus=cpus),))
    return requirement(*sets, index=index, **{"notify": f"step-{index}", **more})


def with_agents(*agents: AgentInfo) -> Ledger:
    ledger = Ledger()
    for one in agents:
        ledger = pool.register(ledger, one, NOW).ledger
    return ledger


def reserved(ledger: Ledger, *wants: Requirement) -> Ledger:
    for one in wants:
        ledger = pool.reserve(ledger, one, NOW).change.ledger
    return ledger


def held(ledger: Ledger, index: int = 0) -> Reservation:
    return ledger.reservations[want(index).key]
