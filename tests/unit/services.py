"""Small services and what was launched of them, for tests of what a change means."""

from collections.abc import Mapping
from datetime import UTC, datetime

from temporal_plans.domain.configuration import Configuration
from temporal_plans.domain.service import (
    Goal,
    PodSpec,
    ResourceSet,
    ServiceSpec,
    TaskSpec,
    task_instance_name,
)
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.domain.task_record import TaskRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def task(name: str = "server", goal: Goal = Goal.RUNNING, **fields: object) -> TaskSpec:
    """A task that asks for its own resources."""
    made = TaskSpec(name=name, goal=goal, cmd="./run", resource_set=f"{name}-resource-set")
    return made.but(**fields)


def pod(kind: str, count: int, *tasks: TaskSpec, cpus: float = 0.1, **fields: object) -> PodSpec:
    """A pod of those tasks, one ``server`` when there are none, each with so many cpus."""
    tasks = tasks or (task(),)
    made = PodSpec(
        type=kind,
        count=count,
        tasks=tasks,
        resource_sets=tuple(ResourceSet(id=id_, cpus=cpus, memory=32) for id_ in _sets(tasks)),
    )
    return made.but(**fields)


def _sets(tasks: tuple[TaskSpec, ...]) -> list[str]:
    return list(dict.fromkeys(one.resource_set for one in tasks))


def service(*pods: PodSpec, **fields: object) -> ServiceSpec:
    return ServiceSpec(name="svc", pods=pods).but(**fields)


def config(config_id: str, spec: ServiceSpec) -> Configuration:
    return Configuration(id=config_id, number=1, spec=spec)


def record(
    spec: ServiceSpec,
    kind: str,
    index: int,
    state: TaskState | None = TaskState.RUNNING,
    *,
    name: str = "server",
    config_id: str = "old",
    ready: bool | None = None,
    **fields: object,
) -> TaskRecord:
    """The launch of one task as the spec has it, in that state; None: not heard of yet."""
    asked = spec.pod(kind).task(name)
    instance = task_instance_name(kind, index, name)
    status = (
        TaskStatus(
            task_id=f"svc__{instance}__1",
            name=instance,
            state=state,
            sequence=0,
            at=NOW,
            ready=ready,
        )
        if state
        else None
    )
    return TaskRecord(
        task_id=f"svc__{instance}__1",
        name=instance,
        pod=kind,
        index=index,
        task=name,
        goal=asked.goal,
        resource_set=asked.resource_set,
        agent="a0",
        hostname="h0",
        config_id=config_id,
        owner="",
        step="",
        launched=NOW,
        status=status,
        check=asked.readiness_check is not None,
    ).but(**fields)


def by_name(*records: TaskRecord) -> Mapping[str, TaskRecord]:
    return {one.name: one for one in records}
