"""Evaluating one offer against one requirement (behaviour 9.2 to 9.6).

Two pipelines: a new pod is placed and gets all its resources; a pod that holds a reservation keeps
its agent, its placement is not looked at again, and what changed in size grows or shrinks in place.
Every stage is evaluated even after one failed, so that an outcome names *all* causes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID, uuid5

from temporal_plans.domain.cluster.agents import AgentInfo, AgentState, MountDisk
from temporal_plans.domain.cluster.offer import (
    Offer,
    cores,
    free_ports,
    ports_of,
    ranges_text,
    thousandths,
    within,
)
from temporal_plans.domain.cluster.placement import Check
from temporal_plans.domain.cluster.refusals import does_not_fit
from temporal_plans.domain.cluster.requirements import PortWant, Requirement, SetWant, VolumeWant
from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.values.refusal import Refusal

Kind = Literal["cpus", "gpus", "memory", "port", "volume"]

Slot = tuple[str, Kind, str]
"""(set, kind, name): the identity of a resource inside its reservation."""

_Found = tuple[Slot, float, str]
"""(slot, value, source) of a resource that fits; it counts only if all others fit too."""

Scalar = Literal["cpus", "gpus", "memory"]
SCALARS: tuple[Scalar, ...] = ("cpus", "gpus", "memory")

_NAMESPACE = UUID("6b5ff2b6-4d55-5ef1-9d0d-0e2b5a3c9c64")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of one evaluation: ``reasons`` are (stage, reason) of every stage that failed;
    ``resources`` are those to be held, none unless it passed."""

    agent: AgentInfo
    reasons: tuple[tuple[str, str], ...]
    resources: tuple[ReservedResource, ...]

    @property
    def passed(self) -> bool:
        return not self.reasons

    @property
    def refusal(self) -> Refusal:
        return does_not_fit(self.agent.id, self.reasons)

    def reservation(
        self, requirement: Requirement, reservation_id: str, now: datetime
    ) -> Reservation:
        """Return the new reservation of an evaluation that passed."""
        agent = self.agent
        return Reservation(
            id=reservation_id,
            owner=requirement.owner,
            pod=requirement.pod,
            index=requirement.index,
            agent=agent.id,
            queue=agent.queue,
            hostname=agent.hostname,
            region=agent.region,
            zone=agent.zone,
            attributes=agent.attributes,
            resources=self.resources,
            created=now,
        )


def new_reservation_id(pool: str, key: str, serial: int, now: datetime) -> str:
    """Return an id that no other reservation ever has: the serial number makes it unique in this
    pool, the time among pools of the same name."""
    return str(uuid5(_NAMESPACE, f"{pool}\n{key}\n{serial}\n{now.isoformat()}"))


def resource_id(reservation: UUID, set_id: str, kind: str, name: str) -> str:
    """Return the id of a resource: derived from its reservation's id, and kept when resized."""
    return str(uuid5(reservation, f"{set_id}/{kind}/{name}"))


def evaluate_new(
    requirement: Requirement, offer: Offer, reservation_id: str, place: Check | None
) -> Evaluation:
    """Evaluate a new pod (behaviour 9.3). ``place``: its placement rule, prepared; None: none."""
    draft = _Draft(offer, reservation_id, {}, requirement)
    draft.agent_stage()
    if place is not None and (reason := place(offer.agent)) is not None:
        draft.refuse("placement", reason)
    return draft.outcome()


def evaluate_existing(requirement: Requirement, offer: Offer, held: Reservation) -> Evaluation:
    """Evaluate a pod with a reservation (behaviour 9.4) on the offer of its agent.

    Growth must fit; what shrinks or is no longer wanted is released. Volumes keep their size and
    their place (behaviour 9.5), dynamic ports their number (behaviour 9.6). A volume that is no
    longer wanted, because its task was removed, stays with the pod as long as the reservation does:
    its data outlives a configuration that is rolled back, and what is on a disk is accounted for.
    Sets in use stay as they are (behaviour 9.4, stage 5).
    """
    kept: dict[Slot, ReservedResource] = {
        (one.set, one.kind, one.name): one for one in held.resources
    }
    sets = _sets_in_place(requirement, held)
    draft = _Draft(offer.without(held.resources), held.id, kept, requirement.but(sets=sets))
    draft.agent_stage()
    return _with_sets_in_use(draft.outcome(), requirement.in_use)


def _with_sets_in_use(outcome: Evaluation, in_use: Sequence[str]) -> Evaluation:
    """Return the outcome; reasons of missing resources name the sets that are in use."""
    if not in_use:
        return outcome
    kept = f"; in use by tasks that run on: {', '.join(in_use)}"
    reasons = [
        (stage, reason + kept if stage in (*SCALARS, "ports") else reason)
        for stage, reason in outcome.reasons
    ]
    return replace(outcome, reasons=tuple(reasons))


def _sets_in_place(requirement: Requirement, held: Reservation) -> tuple[SetWant, ...]:
    """Return the sets to evaluate. While other tasks of the pod run on, their sets keep what they
    hold; a set that holds nothing and gets no launch can wait: it may be a renamed one."""
    if not requirement.in_use:
        return requirement.sets
    due = {"", *requirement.launches, *(one.set for one in held.resources)}
    wanted = {one.id: one for one in requirement.sets if one.id in due}
    wanted |= {set_id: _as_held(set_id, held) for set_id in requirement.in_use}
    return tuple(wanted.values())


def _as_held(set_id: str, held: Reservation) -> SetWant:
    """Return a set as it is held. Without volumes, which stay in any case."""
    has = [one for one in held.resources if one.set == set_id]
    amounts = {one.kind: one.value for one in has}
    return SetWant(
        id=set_id,
        cpus=amounts.get("cpus", 0),
        gpus=amounts.get("gpus", 0),
        memory=int(amounts.get("memory", 0)),
        ports=tuple(
            PortWant(name=one.name, port=int(one.value)) for one in has if one.kind == "port"
        ),
    )


class _Draft:
    """An evaluation in progress: what is left of the offer, what was found, what is missing.

    The offer excludes what is kept; kept amounts are set aside first, so that a stage can only fail
    for what it wants *beyond* them, even on an agent with more reserved than it has now.
    """

    def __init__(
        self,
        offer: Offer,
        reservation_id: str,
        kept: Mapping[Slot, ReservedResource],
        requirement: Requirement,
    ) -> None:
        self._offer = offer
        self._id = UUID(reservation_id)
        self._kept = kept
        self._sets = requirement.sets
        self._reasons: list[tuple[str, str]] = []
        self._left: dict[Scalar, int] = {
            "cpus": offer.cpus,
            "gpus": offer.gpus,
            "memory": offer.memory,
        }
        self._disk = offer.disk
        self._mounts = list(offer.mounts)
        self._ports: dict[Slot, int] = {}
        self._set_aside()

    def refuse(self, stage: str, reason: str) -> None:
        self._reasons.append((stage, reason))

    def agent_stage(self) -> None:
        match self._offer.state:
            case AgentState.ALIVE:
                pass
            case AgentState.UNREACHABLE:
                self.refuse("agent", "the agent is unreachable: its heartbeats stopped")
            case AgentState.LOST:
                self.refuse("agent", "the agent is lost: no heartbeat for too long")

    def outcome(self) -> Evaluation:
        """Run all resource stages and return the result."""
        self._port_stages()
        found = [one for wanted in self._sets for one in self._set_stages(wanted)]
        found += [(slot, one.value, one.source) for slot, one in self._unwanted_volumes()]
        resources = () if self._reasons else tuple(self._resource(*one) for one in found)
        return Evaluation(self._offer.agent, tuple(self._reasons), resources)

    # --- what is kept ---------------------------------------------------------------------------

    def _set_aside(self) -> None:
        for wanted in self._sets:
            for kind in SCALARS:
                self._left[kind] -= min(self._held(wanted, kind), _wanted(wanted, kind))
            for volume in wanted.volumes:
                kept = self._kept.get((wanted.id, "volume", volume.path))
                if kept is None:
                    continue
                self._set_volume_aside(kept)
        for _, kept in self._unwanted_volumes():
            self._set_volume_aside(kept)

    def _set_volume_aside(self, kept: ReservedResource) -> None:
        if kept.source:
            self._mounts = [disk for disk in self._mounts if disk.path != kept.source]
        else:
            self._disk -= int(kept.value)

    def _unwanted_volumes(self) -> Iterator[tuple[Slot, ReservedResource]]:
        wanted: set[Slot] = {
            (one.id, "volume", volume.path) for one in self._sets for volume in one.volumes
        }
        for slot, kept in self._kept.items():
            if kept.kind == "volume" and slot not in wanted:
                yield slot, kept

    def _held(self, wanted: SetWant, kind: Scalar) -> int:
        kept = self._kept.get((wanted.id, kind, ""))
        if kept is None:
            return 0
        return int(kept.value) if kind == "memory" else thousandths(kept.value)

    # --- stages ---------------------------------------------------------------------------------

    def _set_stages(self, wanted: SetWant) -> Iterator[_Found]:
        for kind in SCALARS:
            amount = _wanted(wanted, kind)
            self._scalar_stage(wanted, kind, amount)
            if amount:
                yield (wanted.id, kind, ""), _written(kind, amount), ""
        for port in wanted.ports:
            number = self._ports.get((wanted.id, "port", port.name))
            if number is not None:
                yield (wanted.id, "port", port.name), number, ""
        for volume in wanted.volumes:
            yield from self._volume_stage(wanted, volume)

    def _scalar_stage(self, wanted: SetWant, kind: Scalar, amount: int) -> None:
        more = max(0, amount - self._held(wanted, kind))
        if more <= self._left[kind] or not more:
            self._left[kind] -= more
            return
        unit = "MB of memory" if kind == "memory" else kind
        total = getattr(self._offer.agent.resources, kind)
        grown = " more" if more != amount else ""
        self.refuse(
            kind,
            f"{_named(wanted)} wants {_written(kind, more):.12g}{grown} {unit}, "
            f"{_written(kind, max(0, self._left[kind])):.12g} of {total:.12g} are free",
        )

    def _volume_stage(self, wanted: SetWant, volume: VolumeWant) -> Iterator[_Found]:
        kept = self._kept.get((wanted.id, "volume", volume.path))
        if kept is not None:
            yield (wanted.id, "volume", volume.path), kept.value, kept.source
        elif volume.type == "MOUNT":
            yield from self._mount_stage(wanted, volume)
        elif volume.size <= self._disk:
            self._disk -= volume.size
            yield (wanted.id, "volume", volume.path), volume.size, ""
        else:
            self.refuse(
                "disk",
                f"{_named(wanted)} wants {volume.size} MB of disk for {volume.path}, "
                f"{max(0, self._disk)} of {self._offer.agent.resources.disk} are free",
            )

    def _mount_stage(self, wanted: SetWant, volume: VolumeWant) -> Iterator[_Found]:
        """Take the smallest whole disk that fits, so that large disks stay for large volumes."""
        fitting = [disk for disk in self._mounts if _takes(disk, volume)]
        if fitting:
            disk = min(fitting, key=lambda one: (one.size, one.path))
            self._mounts.remove(disk)
            yield (wanted.id, "volume", volume.path), disk.size, disk.path
            return
        profile = f"profile {' or '.join(volume.profiles)}" if volume.profiles else "no profile"
        self.refuse(
            "mount",
            f"{_named(wanted)} wants a whole disk of {volume.size} MB or more and {profile} for "
            f"{volume.path}, free are {_disks(self._mounts)}",
        )

    # --- ports ----------------------------------------------------------------------------------

    def _port_stages(self) -> None:
        """Assign fixed ports of all sets first, then kept dynamic ports, then new dynamic ports,
        the most restricted first: so no port takes a number that only another port can use. A set
        that holds a fixed port goes before a set that wants it. A dynamic port that another process
        uses meanwhile gets another number."""
        wants = [(wanted, port) for wanted in self._sets for port in wanted.ports]
        wants.sort(key=lambda one: not self._has(*one))
        offered = ports_of(self._offer.agent.resources.ports)
        taken = set(self._offer.used.ports)
        kept = {int(one.value) for one in self._kept.values() if one.kind == "port"}
        for wanted, port in wants:
            if port.port:
                self._fixed_port(wanted, port, offered, taken, kept)
        taken |= set(self._offer.agent.ports_in_use)
        dynamic = [(wanted, port) for wanted, port in wants if not port.port]
        new = [one for one in dynamic if not self._kept_port(*one, taken)]
        for wanted, port in sorted(new, key=lambda one: _width(one[1])):
            self._dynamic_port(wanted, port, offered, taken)

    def _has(self, wanted: SetWant, port: PortWant) -> bool:
        kept = self._kept.get((wanted.id, "port", port.name))
        return kept is not None and kept.value == port.port

    def _fixed_port(
        self,
        wanted: SetWant,
        port: PortWant,
        offered: tuple[range, ...],
        taken: set[int],
        kept: set[int],
    ) -> None:
        if port.port in taken:
            self.refuse("ports", f"{_named(wanted)} wants port {port.port}, which is taken")
        elif port.port in self._offer.agent.ports_in_use and port.port not in kept:
            self.refuse(
                "ports",
                f"{_named(wanted)} wants port {port.port}, "
                "which another process of the machine uses",
            )
        elif not within(port.port, offered) and port.port not in kept:
            self.refuse(
                "ports",
                f"{_named(wanted)} wants port {port.port}, "
                f"the agent offers {ranges_text(offered) or 'none'}",
            )
        else:
            self._claim(wanted, port, port.port, taken)

    def _kept_port(self, wanted: SetWant, port: PortWant, taken: set[int]) -> bool:
        kept = self._kept.get((wanted.id, "port", port.name))
        if kept is None or int(kept.value) in taken:
            return False
        if port.ranges and not within(int(kept.value), ports_of(port.ranges)):
            return False
        self._claim(wanted, port, int(kept.value), taken)
        return True

    def _dynamic_port(
        self, wanted: SetWant, port: PortWant, offered: tuple[range, ...], taken: set[int]
    ) -> None:
        ranges = ports_of(port.ranges)
        if port.ranges and not ranges:
            self.refuse("ports", f"{_named(wanted)} wants port {port.name} in an empty range")
            return
        number = next(free_ports(offered, ranges, taken), None)
        if number is not None:
            self._claim(wanted, port, number, taken)
            return
        where = f" in {ranges_text(ranges)}" if ranges else ""
        self.refuse(
            "ports",
            f"{_named(wanted)} wants a port for {port.name}{where}, "
            f"none of the agent's {ranges_text(offered) or '(none)'} is free",
        )

    def _claim(self, wanted: SetWant, port: PortWant, number: int, taken: set[int]) -> None:
        taken.add(number)
        self._ports[wanted.id, "port", port.name] = number

    def _resource(self, slot: Slot, value: float, source: str) -> ReservedResource:
        set_id, kind, name = slot
        return ReservedResource(
            id=resource_id(self._id, set_id, kind, name),
            set=set_id,
            kind=kind,
            value=value,
            name=name,
            source=source,
        )


def _wanted(wanted: SetWant, kind: Scalar) -> int:
    match kind:
        case "cpus":
            return thousandths(wanted.cpus)
        case "gpus":
            return thousandths(wanted.gpus)
        case "memory":
            return wanted.memory


def _written(kind: Scalar, amount: int) -> float:
    return amount if kind == "memory" else cores(amount)


def _named(wanted: SetWant) -> str:
    return f"set {wanted.id}" if wanted.id else "the pod"


def _takes(disk: MountDisk, volume: VolumeWant) -> bool:
    """Whether a volume may take a disk. A disk with a profile is only for volumes that list it, a
    disk without a profile only for volumes without profiles."""
    if disk.size < volume.size:
        return False
    return disk.profile in volume.profiles if volume.profiles else disk.profile is None


def _disks(disks: list[MountDisk]) -> str:
    return (
        ", ".join(f"{disk.path} ({disk.size} MB, {disk.profile or 'no profile'})" for disk in disks)
        or "none"
    )


def _width(port: PortWant) -> int:
    """The count of numbers that a dynamic port may get."""
    return sum(len(one) for one in ports_of(port.ranges)) if port.ranges else 1 << 16
