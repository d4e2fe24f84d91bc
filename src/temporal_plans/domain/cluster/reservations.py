"""What a pod instance holds on an agent."""

from datetime import datetime
from typing import Literal

from pydantic import Field, field_serializer

from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.queues import AgentQueue


class ReservedResource(CompactValue):
    """One resource with an id of its own. ``value``: the amount, or the number of a port."""

    id: str
    set: str
    kind: Literal["cpus", "gpus", "memory", "port", "volume"]
    value: float
    name: str = ""
    """the port's name, or the volume's path in the sandbox"""
    source: str = ""
    """the mount disk's path of a MOUNT volume"""

    @field_serializer("value")
    def _whole(self, value: float) -> object:
        """Write ports and megabytes as whole numbers."""
        return int(value) if self.kind not in ("cpus", "gpus") and value.is_integer() else value


class Reservation(CompactValue):
    """What a pod instance holds on an agent until it is released. ``queue`` is the agent's task
    queue, on which activities about the reservation are scheduled."""

    id: str
    owner: str
    pod: str
    index: int
    agent: str
    queue: AgentQueue = Field(min_length=1)
    hostname: str
    region: str | None = None
    zone: str | None = None
    attributes: dict[str, str] = {}
    resources: tuple[ReservedResource, ...] = ()
    created: datetime

    @property
    def key(self) -> str:
        return reservation_key(self.owner, self.pod, self.index)

    def port(self, set_id: str, name: str) -> int:
        """Return the number of a reserved port; KeyError when no port has that name."""
        for resource in self.resources:
            if (resource.kind, resource.set, resource.name) == ("port", set_id, name):
                return int(resource.value)
        raise KeyError(f"{set_id}/{name}")


def reservation_key(owner: str, pod: str, index: int) -> str:
    """Return the key of the one reservation that a pod instance of an owner may have."""
    return f"{owner}:{pod}-{index}"
