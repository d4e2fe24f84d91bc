"""The resources of an agent: in total, reserved and free (behaviour 9.1).

Cores are counted in thousandths, so that sums are exact and 0.1 + 0.2 is 0.3 (behaviour 9.5: three
digits, fixed point).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from pydantic import field_serializer

from temporal_plans.domain.cluster.agents import AgentInfo, AgentState, MountDisk
from temporal_plans.domain.cluster.reservations import ReservedResource
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.ports import PortRange

MAX_PORT = 65535


def thousandths(cores: float) -> int:
    """Return cores as a whole number of thousandths; 0 for NaN and infinity."""
    return round(cores * 1000) if math.isfinite(cores) else 0


def cores(amount: int) -> float:
    """Return thousandths as cores."""
    return amount / 1000


class Used(CompactValue):
    """The running total of what is reserved on one agent. ``cpus`` and ``gpus`` in thousandths of
    a core, ``memory`` and ``disk`` in MB, ``mounts`` by path."""

    cpus: int = 0
    gpus: int = 0
    memory: int = 0
    disk: int = 0
    ports: frozenset[int] = frozenset()
    mounts: frozenset[str] = frozenset()
    reservations: int = 0

    @field_serializer("ports")
    def _ports_in_order(self, ports: frozenset[int]) -> list[int]:
        return sorted(ports)

    @field_serializer("mounts")
    def _mounts_in_order(self, mounts: frozenset[str]) -> list[str]:
        return sorted(mounts)

    def plus(self, resources: Sequence[ReservedResource], reservations: int = 1) -> "Used":
        """Return the total with these resources added."""
        return self._changed_by(
            resources,
            1,
            self.ports | {int(r.value) for r in resources if r.kind == "port"},
            self.mounts | {r.source for r in resources if r.source},
            reservations,
        )

    def minus(self, resources: Sequence[ReservedResource], reservations: int = 1) -> "Used":
        """Return the total without these resources, which must have been added before."""
        return self._changed_by(
            resources,
            -1,
            self.ports - {int(r.value) for r in resources if r.kind == "port"},
            self.mounts - {r.source for r in resources if r.source},
            -reservations,
        )

    def _changed_by(
        self,
        resources: Sequence[ReservedResource],
        sign: int,
        ports: frozenset[int],
        mounts: frozenset[str],
        reservations: int,
    ) -> "Used":
        cpus = gpus = memory = disk = 0
        for resource in resources:
            match resource.kind:
                case "cpus":
                    cpus += thousandths(resource.value)
                case "gpus":
                    gpus += thousandths(resource.value)
                case "memory":
                    memory += int(resource.value)
                case "volume" if not resource.source:
                    disk += int(resource.value)
                case _:
                    pass
        return self.but(
            cpus=self.cpus + sign * cpus,
            gpus=self.gpus + sign * gpus,
            memory=self.memory + sign * memory,
            disk=self.disk + sign * disk,
            ports=ports,
            mounts=mounts,
            reservations=self.reservations + reservations,
        )


@dataclass(frozen=True, slots=True)
class Offer:
    """One agent and the total of its reservations: a requirement is evaluated against it.

    Free amounts may be negative: an agent may come back with less than is reserved on it.
    """

    agent: AgentInfo
    state: AgentState = AgentState.ALIVE
    used: Used = field(default_factory=Used)

    @property
    def cpus(self) -> int:
        return thousandths(self.agent.resources.cpus) - self.used.cpus

    @property
    def gpus(self) -> int:
        return thousandths(self.agent.resources.gpus) - self.used.gpus

    @property
    def memory(self) -> int:
        return self.agent.resources.memory - self.used.memory

    @property
    def disk(self) -> int:
        return self.agent.resources.disk - self.used.disk

    @property
    def mounts(self) -> tuple[MountDisk, ...]:
        """The mount disks that are free."""
        taken = self.used.mounts
        return tuple(disk for disk in self.agent.resources.mounts if disk.path not in taken)

    @property
    def share(self) -> float:
        """How full the agent is: the larger of its reserved shares of cpus and memory."""
        resources = self.agent.resources
        return max(
            _share(self.used.cpus, thousandths(resources.cpus)),
            _share(self.used.memory, resources.memory),
        )

    def without(self, resources: Sequence[ReservedResource]) -> "Offer":
        """Return the offer as if these resources were released."""
        return Offer(self.agent, self.state, self.used.minus(resources))


def ports_of(ranges: Iterable[PortRange]) -> tuple[range, ...]:
    """Return port ranges with their open ends closed, empty ones left out."""
    closed = (
        range(
            max(1, one.begin if one.begin is not None else 1),
            min(MAX_PORT, one.end if one.end is not None else MAX_PORT) + 1,
        )
        for one in ranges
    )
    return tuple(one for one in closed if one)


def within(port: int, ranges: Iterable[range]) -> bool:
    """Whether a port is in one of the ranges."""
    return any(port in one for one in ranges)


def free_ports(
    offered: Sequence[range], wanted: Sequence[range], taken: frozenset[int] | set[int]
) -> Iterator[int]:
    """Yield the offered ports that are wanted (``wanted`` empty: any) and not taken, in order."""
    for one in offered:
        for port in one:
            if port not in taken and (not wanted or within(port, wanted)):
                yield port


def ranges_text(ranges: Iterable[range]) -> str:
    """Return ranges as text: ``1025-32000, 40000``."""
    return ", ".join(
        f"{one.start}-{one.stop - 1}" if len(one) > 1 else str(one.start) for one in ranges
    )


def _share(used: int, total: int) -> float:
    return used / total if total > 0 else 1.0
