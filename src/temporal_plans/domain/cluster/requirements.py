"""The requirement of a pod instance: the resources that it needs on an agent."""

from typing import Annotated, Literal

from pydantic import Field

from temporal_plans.domain.cluster.agents import AMOUNT_LIMIT
from temporal_plans.domain.cluster.reservations import reservation_key
from temporal_plans.domain.values.model import CompactValue, WorkflowId
from temporal_plans.domain.values.ports import PortRange

_LIST_LIMIT = 1000
"""Ports, volumes, sets and tasks of a pod."""

_Text = Annotated[str, Field(max_length=1000)]
_Amount = Annotated[float, Field(ge=-AMOUNT_LIMIT, le=AMOUNT_LIMIT)]
_Megabytes = Annotated[int, Field(ge=-AMOUNT_LIMIT, le=AMOUNT_LIMIT)]


class PortWant(CompactValue):
    """A requested port; ``port`` 0: any free port of the agent inside ``ranges``."""

    name: _Text
    port: int = Field(default=0, ge=-AMOUNT_LIMIT, le=AMOUNT_LIMIT)
    ranges: tuple[PortRange, ...] = Field(default=(), max_length=_LIST_LIMIT)


class VolumeWant(CompactValue):
    """A requested volume; ``size`` in MB."""

    path: _Text
    size: _Megabytes
    type: Literal["ROOT", "MOUNT"] = "ROOT"
    profiles: tuple[_Text, ...] = Field(default=(), max_length=_LIST_LIMIT)


class SetWant(CompactValue):
    """The resources of one resource set; the pod's own volumes are a set with the empty id."""

    id: _Text
    cpus: _Amount = 0.0
    gpus: _Amount = 0.0
    memory: _Megabytes = 0
    ports: tuple[PortWant, ...] = Field(default=(), max_length=_LIST_LIMIT)
    volumes: tuple[VolumeWant, ...] = Field(default=(), max_length=_LIST_LIMIT)


class Requirement(CompactValue):
    """The resources that one pod instance needs on one agent.

    ``owner`` is the workflow that the reservation belongs to (``service/<name>``, or a step that
    runs a command); (owner, pod, index) names the reservation, so asking twice reserves once.
    ``notify`` is the workflow that is notified when the waiting requirement fits. ``permanent``
    requests a new place and releases the old reservation, whose id is ``replaces``: when that is no
    longer held, the move was made already and is not repeated. ``launches`` are the sets of the
    tasks to be launched, ``in_use`` those of tasks that keep running beside them, maybe of another
    configuration.
    """

    owner: WorkflowId
    pod: WorkflowId
    index: int
    notify: WorkflowId
    sets: tuple[SetWant, ...] = Field(default=(), max_length=_LIST_LIMIT)
    placement: str = Field(default="", max_length=20_000)
    permanent: bool = False
    replaces: _Text = ""
    launches: tuple[_Text, ...] = Field(default=(), max_length=_LIST_LIMIT)
    in_use: tuple[_Text, ...] = Field(default=(), max_length=_LIST_LIMIT)

    @property
    def key(self) -> str:
        return reservation_key(self.owner, self.pod, self.index)
