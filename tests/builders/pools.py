"""Pools: their agents and offers, what is wanted of them, and what is reserved there."""

from typing import Any

from builders.clock import NOW
from temporal_plans.domain.cluster.agents import AgentInfo, AgentResources, AgentState
from temporal_plans.domain.cluster.requirements import Requirement, SetWant
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.messages.pools import AgentView


def agent(
    id: str, *, cpus: float = 4, resources: AgentResources | None = None, **fields: Any
) -> AgentInfo:
    given = {
        "id": id,
        "queue": f"queue-{id}",
        "hostname": f"host-{id}",
        "resources": resources or AgentResources(cpus=cpus, memory=1000),
    }
    return AgentInfo.model_validate({**given, **fields})


def agent_view(id: str, state: AgentState = AgentState.ALIVE, **fields: Any) -> AgentView:
    """An agent as its Pool shows it."""
    info = agent(id, **fields)
    return AgentView(info=info, state=state, registered=NOW, free_cpus=1, free_memory=1)


def requirement(*sets: SetWant, index: int = 0, **more: Any) -> Requirement:
    """What a pod instance ``hello`` of the service ``s`` wants."""
    fields: dict[str, Any] = {"owner": "service/s", "pod": "hello", "notify": "n", **more}
    return Requirement(**fields, index=index, sets=sets)


def reservation(
    pod: str, index: int, *resources: str, on: AgentInfo | None = None, **fields: Any
) -> Reservation:
    """What a pod instance of the service ``svc`` has on that agent."""
    place = on or agent("a0")
    given = {
        "id": f"r-{pod}-{index}",
        "owner": "service/svc",
        "pod": pod,
        "index": index,
        "agent": place.id,
        "queue": place.queue,
        "hostname": place.hostname,
        "region": place.region,
        "zone": place.zone,
        "attributes": place.attributes,
        "created": NOW,
        "resources": tuple(
            ReservedResource(id=one, set="s", kind="cpus", value=0.1) for one in resources
        ),
    }
    return Reservation.model_validate({**given, **fields})


def by_key(*reservations: Reservation) -> dict[str, Reservation]:
    return {one.key: one for one in reservations}
