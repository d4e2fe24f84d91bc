"""Services, records and reservations for the tests of recovery and removal."""

from datetime import UTC, datetime, timedelta

from temporal_plans.domain.cluster import Reservation, ReservedResource
from temporal_plans.domain.service import Goal, PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.domain.task_record import TaskRecord

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def task(name: str, goal: Goal = Goal.RUNNING, *, essential: bool = True) -> TaskSpec:
    return TaskSpec(name=name, goal=goal, cmd="sleep 1", resource_set=name, essential=essential)


def pod(name: str, count: int, *tasks: TaskSpec) -> PodSpec:
    sets = tuple(ResourceSet(id=one.name, cpus=0.1, memory=32) for one in tasks)
    return PodSpec(type=name, count=count, tasks=tasks, resource_sets=sets)


def service(*pods: PodSpec) -> ServiceSpec:
    return ServiceSpec(name="svc", pods=pods)


def record(
    pod_type: str,
    index: int,
    task_name: str,
    state: TaskState | None = TaskState.RUNNING,
    *,
    goal: Goal = Goal.RUNNING,
    launch: int = 1,
    config: str = "c1",
    plan: str = "deploy",
    permanently_failed: bool = False,
    exit_code: int | None = None,
    message: str = "",
) -> TaskRecord:
    """The newest launch of a task, the ``launch``-th; ``state`` None: nothing was heard of it."""
    name = f"{pod_type}-{index}-{task_name}"
    task_id = f"svc__{name}__{launch}"
    status = None
    if state is not None:
        status = TaskStatus(
            task_id=task_id,
            name=name,
            state=state,
            sequence=1,
            at=NOW,
            exit_code=exit_code,
            message=message,
        )
    return TaskRecord(
        task_id=task_id,
        name=name,
        pod=pod_type,
        index=index,
        task=task_name,
        goal=goal,
        resource_set=task_name,
        agent="a1",
        hostname="host-1",
        config_id=config,
        owner="",
        step=f"svc/{plan}/phase/step",
        launched=NOW,
        status=status,
        permanently_failed=permanently_failed,
    )


def by_name(*records: TaskRecord) -> dict[str, TaskRecord]:
    return {one.name: one for one in records}


def reservation(
    pod_type: str, index: int, *resources: str, hostname: str = "host-1", agent: str = "a1"
) -> Reservation:
    return Reservation(
        id=f"r-{pod_type}-{index}",
        owner="service/svc",
        pod=pod_type,
        index=index,
        agent=agent,
        hostname=hostname,
        created=NOW,
        resources=tuple(
            ReservedResource(id=one, set="s", kind="cpus", value=0.1) for one in resources
        ),
    )


def by_key(*reservations: Reservation) -> dict[str, Reservation]:
    return {one.key: one for one in reservations}
