"""Taking pods away, and whole services: the plans ``decommission`` (reference 7) and, for an
uninstall, ``deploy`` (reference 8). Both are ordinary plans of upkeep steps.

Differences from the reference, all meant:
- An uninstall gives every reservation back, also those of tasks that ended in ERROR: here the Pool
  knows of it whatever became of the launch.
- There is nothing of TLS to clean up.
- Agents on one host share a phase of the uninstall, as the phase has the host's name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from temporal_plans.domain.cluster import Reservation, ReservedResource
from temporal_plans.domain.generation import DEPLOY
from temporal_plans.domain.names import bounded
from temporal_plans.domain.plan import (
    DeregisterWork,
    EraseWork,
    KillWork,
    PhaseSpec,
    PlanSpec,
    StepSpec,
    StrategySpec,
    UnreserveWork,
)
from temporal_plans.domain.recovery import launchable_tasks
from temporal_plans.domain.service import ServiceSpec
from temporal_plans.domain.task_record import TaskRecord

DECOMMISSION = "decommission"
UNKNOWN_AGENT = "UNKNOWN_AGENT"
"""Stands for the name of a host that has none."""

Instance = tuple[str, int]
"""Pod type and index."""

_SERIAL = StrategySpec(name="serial")
_PARALLEL = StrategySpec(name="parallel")


def to_decommission(
    spec: ServiceSpec,
    records: Mapping[str, TaskRecord],
    reservations: Mapping[str, Reservation],
) -> tuple[Instance, ...]:
    """The pod instances that have tasks or resources and are not in the service any more, in the
    order in which they go (reference 7.1, 7.2): pod types that it does not know first, by name,
    then its own, the last one first; the highest index first."""
    counts = {pod.type: pod.count for pod in spec.pods}
    places = {pod.type: place for place, pod in enumerate(spec.pods)}
    known = {(record.pod, record.index) for record in records.values()}
    known |= {(held.pod, held.index) for held in reservations.values()}
    leaving = [(pod, index) for pod, index in known if index >= counts.get(pod, 0)]

    def turn(instance: Instance) -> tuple[int, str, int]:
        pod, index = instance
        return (-places[pod] if pod in places else -len(places), pod, -index)

    return tuple(sorted(leaving, key=turn))


def decommission_plan(
    spec: ServiceSpec,
    records: Mapping[str, TaskRecord],
    reservations: Mapping[str, Reservation],
) -> PlanSpec | None:
    """The plan that takes them away one after the other; None when nothing must go.

    A phase per pod instance: kill its tasks, give its resources back, forget its tasks.
    """
    phases = tuple(
        _leaving(
            instance,
            _tasks(record for record in records.values() if _is(record, instance)),
            [one for one in reservations.values() if _is(one, instance)],
        )
        for instance in to_decommission(spec, records, reservations)
    )
    return PlanSpec(name=DECOMMISSION, strategy=_SERIAL, phases=phases) if phases else None


def uninstall_plan(
    spec: ServiceSpec,
    records: Mapping[str, TaskRecord],
    reservations: Mapping[str, Reservation],
) -> PlanSpec:
    """The plan that ends a service; it takes the place of ``deploy`` (reference 8.2).

    Only the last phase has to wait for others: an agent ends the tasks of what it gives back.
    """
    kill = PhaseSpec(
        name="kill-tasks",
        strategy=_PARALLEL,
        steps=tuple(
            _step(f"kill-task-{task.task_id}", KillWork(task=task.name, task_id=task.task_id))
            for task in _tasks(records.values())
        ),
    )
    unreserve = tuple(_host_phases(reservations.values()))
    deregister = PhaseSpec(
        name="deregister-service",
        strategy=_SERIAL,
        depends_on=tuple(phase.name for phase in (kill, *unreserve)),
        steps=(_step("deregister", DeregisterWork()),),
    )
    return PlanSpec(
        name=DEPLOY,
        description=f"Uninstall of {spec.name}",
        strategy=StrategySpec(name="dependency"),
        phases=(kill, *unreserve, deregister),
    )


def unneeded(
    records: Mapping[str, TaskRecord], plans: Sequence[PlanSpec]
) -> tuple[TaskRecord, ...]:
    """The live tasks that none of these plans has to do with: they are to be killed, their
    resources stay (reference 4.4). ``plans`` are all of a service, decommission included."""
    needed = launchable_tasks(plans, records) | {
        step.work.task
        for plan in plans
        for phase in plan.phases
        for step in phase.steps
        if isinstance(step.work, KillWork)
    }
    return tuple(task for task in _tasks(records.values()) if task.live and task.name not in needed)


def _leaving(
    instance: Instance, tasks: Sequence[TaskRecord], held: Sequence[Reservation]
) -> PhaseSpec:
    pod, index = instance
    return PhaseSpec(
        name=bounded(f"{pod}-{index}"),
        strategy=_SERIAL,
        steps=(
            *(_step(f"kill-{task.name}", KillWork(task=task.name)) for task in tasks),
            *_unreserve_steps(held),
            *(_step(f"erase-{task.name}", EraseWork(task=task.name)) for task in tasks),
        ),
    )


def _host_phases(reservations: Iterable[Reservation]) -> Iterator[PhaseSpec]:
    """A phase per host, in order of their names."""
    hosts: dict[str, list[Reservation]] = {}
    for one in sorted(reservations, key=lambda one: one.key):
        hosts.setdefault(_host(one), []).append(one)
    for host in sorted(hosts):
        steps = sorted(_unreserve_steps(hosts[host]), key=lambda step: step.name)
        name = bounded(f"unreserve-resources-{host}")
        yield PhaseSpec(name=name, strategy=_PARALLEL, steps=tuple(steps))


def _host(reservation: Reservation) -> str:
    """The host's name as it may stand in a phase's name: agents call themselves what they like."""
    name = "".join(
        "_" if char == "/" or not char.isprintable() else char for char in reservation.hostname
    )
    return name.strip() or UNKNOWN_AGENT


def _unreserve_steps(reservations: Iterable[Reservation]) -> Iterator[StepSpec]:
    """One for each distinct resource."""
    resources: dict[str, tuple[Reservation, ReservedResource]] = {
        resource.id: (one, resource) for one in reservations for resource in one.resources
    }
    for held, resource in resources.values():
        yield _step(
            f"unreserve-{resource.id}",
            UnreserveWork(
                resource=resource.id, key=held.key, reservation=held.id, agent=held.agent
            ),
        )


def _step(name: str, work: KillWork | UnreserveWork | EraseWork | DeregisterWork) -> StepSpec:
    return StepSpec(name=bounded(name), work=work)


def _tasks(records: Iterable[TaskRecord]) -> list[TaskRecord]:
    return sorted(records, key=lambda record: record.name)


def _is(one: TaskRecord | Reservation, instance: Instance) -> bool:
    return (one.pod, one.index) == instance
