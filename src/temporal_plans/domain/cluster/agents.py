"""Agents, as they describe themselves when they register."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from temporal_plans.domain.values.model import AgentId, Value
from temporal_plans.domain.values.ports import PortRange
from temporal_plans.domain.values.queues import AgentQueue

AMOUNT_LIMIT = 10**15
"""The largest amount of a resource."""

ATTRIBUTES_LIMIT = 10_000
"""Characters of an agent's attributes: its pool carries those of all agents from run to run."""

LIST_LIMIT = 100
"""Ranges of ports and whole disks of an agent."""

PORTS_IN_USE_LIMIT = 1000
"""Ports in use of an agent, the lowest: they are handed out in this order."""


def _size(attributes: dict[str, str]) -> int:
    return sum(len(key) + len(value) for key, value in attributes.items())


def _bounded(attributes: dict[str, str]) -> dict[str, str]:
    if (size := _size(attributes)) > ATTRIBUTES_LIMIT:
        raise ValueError(f"have {size} characters; at most {ATTRIBUTES_LIMIT} are taken")
    return attributes


def _real(ranges: tuple[PortRange, ...]) -> tuple[PortRange, ...]:
    for one in ranges:
        if not all(0 <= port <= 65535 for port in (one.begin or 0, one.end or 0)):
            raise ValueError("a port is between 0 and 65535")
    return ranges


_Text = Annotated[str, Field(max_length=1000)]
_Amount = Annotated[float, Field(ge=0, le=AMOUNT_LIMIT)]
_Megabytes = Annotated[int, Field(ge=0, le=AMOUNT_LIMIT)]
_Ports = Annotated[tuple[PortRange, ...], Field(max_length=LIST_LIMIT), AfterValidator(_real)]
_Attributes = Annotated[dict[str, str], AfterValidator(_bounded)]


class MountDisk(Value):
    """A whole disk that a MOUNT volume may take."""

    path: _Text
    size: _Megabytes
    profile: _Text | None = None


class AgentResources(Value):
    """The resources of an agent: cpus and gpus in cores, memory and disk in MB."""

    cpus: _Amount
    memory: _Megabytes
    gpus: _Amount = 0.0
    disk: _Megabytes = 0
    ports: _Ports = (PortRange(begin=1025, end=32000),)
    mounts: tuple[MountDisk, ...] = Field(default=(), max_length=LIST_LIMIT)


class AgentInfo(Value):
    """The registration of an agent. ``queue`` is the task queue of its activities (launch, kill,
    destroy, watch, read_log). ``boot`` is new at every start of the agent; ``lineage`` stays as
    long as its work directory does, and so tells a restart from another agent. ``ports_in_use`` are
    ports of its resources on which other processes of the machine listen."""

    id: AgentId
    queue: AgentQueue = Field(min_length=1)
    hostname: _Text
    pool: _Text = "default"
    resources: AgentResources
    attributes: _Attributes = {}
    region: _Text | None = None
    zone: _Text | None = None
    ports_in_use: tuple[Annotated[int, Field(ge=0, le=65535)], ...] = Field(
        default=(), max_length=PORTS_IN_USE_LIMIT
    )
    boot: _Text = ""
    lineage: _Text = ""
    isolation: Literal["cgroup-v2", "accounted"] = "accounted"
    version: _Text = ""

    @property
    def attribute_size(self) -> int:
        """The number of characters of its attributes."""
        return _size(self.attributes)


class AgentState(StrEnum):
    """``UNREACHABLE``: heartbeats stopped; ``LOST``: silent for too long, its tasks are LOST."""

    ALIVE = "ALIVE"
    UNREACHABLE = "UNREACHABLE"
    LOST = "LOST"
