"""Removal of pods and of whole services: the plans ``decommission`` (behaviour 7) and, for an
uninstall, ``deploy`` (behaviour 8). Both are ordinary plans of upkeep steps.

Differences from the followed system (docs/compatibility.md), all intended:
- An uninstall releases every reservation, also those of tasks that ended in ERROR: here the Pool
  knows the reservation whatever the result of the launch.
- There is nothing of TLS to clean up.
- Agents on one host share a phase of the uninstall, as the phase has the host's name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from temporal_plans.domain.cluster.reservations import Reservation, ReservedResource
from temporal_plans.domain.kinds.deregister import DeregisterWork
from temporal_plans.domain.kinds.erase import EraseWork
from temporal_plans.domain.kinds.kill import KillWork
from temporal_plans.domain.kinds.unreserve import UnreserveWork
from temporal_plans.domain.plans.plan import PhaseSpec, PlanSpec, StepSpec
from temporal_plans.domain.plans.strategies.spec import StrategySpec
from temporal_plans.domain.services.launchable import launchable_tasks
from temporal_plans.domain.services.plan_names import DECOMMISSION, DEPLOY
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.values.names import bounded

UNKNOWN_AGENT = "UNKNOWN_AGENT"
"""The host name for agents without one."""

Instance = tuple[str, int]
"""Pod type and index."""

_SERIAL = StrategySpec(name="serial")
_PARALLEL = StrategySpec(name="parallel")


def to_decommission(
    spec: ServiceSpec,
    records: Mapping[str, TaskRecord],
    reservations: Mapping[str, Reservation],
) -> tuple[Instance, ...]:
    """Return the pod instances that have tasks or resources but are no longer in the service, in
    the order of their removal (behaviour 7.1, 7.2): unknown pod types first, by name, then its own,
    the last first; the highest index first."""
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
    """Return the plan that removes them one after the other; None without any.

    A phase per pod instance: kill its tasks, release its resources, erase its tasks.
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
    """Return the plan that uninstalls a service; it replaces ``deploy`` (behaviour 8.2).

    Only the last phase has to wait for others: an agent ends the tasks of a destroyed reservation.
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
    """Return the live tasks that none of these plans launches or kills: they are to be killed,
    their resources stay (behaviour 4.4). ``plans`` are all of a service, decommission included."""
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
    """Yield a phase per host, in order of their names."""
    hosts: dict[str, list[Reservation]] = {}
    for one in sorted(reservations, key=lambda one: one.key):
        hosts.setdefault(_host(one), []).append(one)
    for host in sorted(hosts):
        steps = sorted(_unreserve_steps(hosts[host]), key=lambda step: step.name)
        name = bounded(f"unreserve-resources-{host}")
        yield PhaseSpec(name=name, strategy=_PARALLEL, steps=tuple(steps))


def _host(reservation: Reservation) -> str:
    """Return the host's name with characters that a phase's name may not have replaced."""
    name = "".join(
        "_" if char == "/" or not char.isprintable() else char for char in reservation.hostname
    )
    return name.strip() or UNKNOWN_AGENT


def _unreserve_steps(reservations: Iterable[Reservation]) -> Iterator[StepSpec]:
    """Yield a step for each distinct resource."""
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
