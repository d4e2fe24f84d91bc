"""The words of the cluster seam: what agents offer, what a pod requires, what it then holds.

One pod instance holds one reservation on one agent (reference 9). Amounts: cpus and gpus in
cores, memory, disk and volume sizes in MB.
"""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from temporal_plans.domain.model import AgentId, CompactValue, Value, WorkflowId
from temporal_plans.domain.service import PortRange


class MountDisk(Value):
    """A whole disk that a MOUNT volume may take."""

    path: str
    size: int
    profile: str | None = None


class AgentResources(Value):
    cpus: float
    memory: int
    gpus: float = 0.0
    disk: int = 0
    ports: tuple[PortRange, ...] = (PortRange(begin=1025, end=32000),)
    mounts: tuple[MountDisk, ...] = ()


class AgentInfo(Value):
    """What an agent says of itself when it registers. ``boot`` is new at every start of it;
    ``lineage`` stays as long as its work directory does, and so tells a restart from a stranger."""

    id: AgentId
    hostname: str
    pool: str = "default"
    resources: AgentResources
    attributes: dict[str, str] = {}
    region: str | None = None
    zone: str | None = None
    boot: str = ""
    lineage: str = ""
    isolation: Literal["cgroup-v2", "accounted"] = "accounted"
    version: str = ""


class AgentState(StrEnum):
    """``UNREACHABLE``: heartbeats stopped; ``LOST``: given up, its tasks are LOST."""

    ALIVE = "ALIVE"
    UNREACHABLE = "UNREACHABLE"
    LOST = "LOST"


class PortWant(CompactValue):
    """``port`` 0: any free port of the agent inside ``ranges``."""

    name: str
    port: int = 0
    ranges: tuple[PortRange, ...] = ()


class VolumeWant(CompactValue):
    path: str
    size: int
    type: Literal["ROOT", "MOUNT"] = "ROOT"
    profiles: tuple[str, ...] = ()


class SetWant(CompactValue):
    """One resource set; the pod's own volumes are a set with the empty id."""

    id: str
    cpus: float = 0.0
    gpus: float = 0.0
    memory: int = 0
    ports: tuple[PortWant, ...] = ()
    volumes: tuple[VolumeWant, ...] = ()


class Requirement(CompactValue):
    """What one pod instance needs on one agent.

    ``owner`` is the workflow that the reservation belongs to (``service/<name>``, or a step that
    runs a command); (owner, pod, index) names the reservation, so asking twice reserves once.
    ``notify`` is the workflow told when a waiting requirement fits; ``permanent`` asks for a new
    place and gives the old one up; ``replaces`` is the id of that old one: when it is no longer
    the one held, the move was made already, and asking again does not repeat it. ``launches`` are
    the sets of the tasks to be launched, ``in_use`` those of tasks that run on beside them, maybe
    of another configuration.
    """

    owner: WorkflowId
    pod: WorkflowId
    index: int
    notify: WorkflowId
    sets: tuple[SetWant, ...] = ()
    placement: str = ""
    permanent: bool = False
    replaces: str = ""
    launches: tuple[str, ...] = ()
    in_use: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return reservation_key(self.owner, self.pod, self.index)


class ReservedResource(CompactValue):
    """One resource with an id of its own. ``value``: amount, or the number of a port."""

    id: str
    set: str
    kind: Literal["cpus", "gpus", "memory", "port", "volume"]
    value: float
    name: str = ""
    """the port's name, or the volume's path in the sandbox"""
    source: str = ""
    """the mount disk's path of a MOUNT volume"""


class Reservation(CompactValue):
    """What a pod instance holds on an agent until it is released."""

    id: str
    owner: str
    pod: str
    index: int
    agent: str
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
        """The number of a reserved port; KeyError when there is none of that name."""
        for resource in self.resources:
            if (resource.kind, resource.set, resource.name) == ("port", set_id, name):
                return int(resource.value)
        raise KeyError(f"{set_id}/{name}")


class Refusal(CompactValue):
    """Why one agent can't take a requirement: (stage, reason) pairs, all causes."""

    agent: str
    hostname: str = ""
    reasons: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.agent}: " + "; ".join(reason for _, reason in self.reasons)


def reservation_key(owner: str, pod: str, index: int) -> str:
    """Names the one reservation that a pod instance of an owner has."""
    return f"{owner}:{pod}-{index}"
