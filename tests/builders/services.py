"""Services: their tasks, pods and configurations, and what they say of their plans."""

from collections.abc import Iterable

from temporal_plans.domain.services.configuration import Configuration
from temporal_plans.domain.services.spec import PodSpec, ResourceSet, ServiceSpec, TaskSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.messages.owners import PlanRecord
from temporal_plans.messages.services import ServiceStatus


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


def _sets(tasks: Iterable[TaskSpec]) -> list[str]:
    return list(dict.fromkeys(one.resource_set for one in tasks))


def service(*pods: PodSpec, **fields: object) -> ServiceSpec:
    return ServiceSpec(name="svc", pods=pods).but(**fields)


def config(config_id: str, spec: ServiceSpec) -> Configuration:
    return Configuration(id=config_id, number=1, spec=spec)


def plan_record(service: str, plan: str, priority: int = 0, **fields: object) -> PlanRecord:
    given = {"name": plan, "workflow_id": f"{service}/{plan}", "priority": priority}
    return PlanRecord.model_validate({**given, **fields})


def service_status(name: str, *plans: PlanRecord | str) -> ServiceStatus:
    """What a service with these plans answers to the query ``status``."""
    records = tuple(
        plan_record(name, plan, priority) if isinstance(plan, str) else plan
        for priority, plan in enumerate(plans)
    )
    return ServiceStatus(name=name, config_id="1", pool="default", plans=records)
