"""Tasks that were launched: what their service recorded, and what was reported of them."""

from datetime import datetime
from typing import Any

from builders.clock import NOW
from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.services.spec import ServiceSpec
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.names import task_instance_name
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus


def status(
    task_id: str,
    state: TaskState = TaskState.RUNNING,
    *,
    name: str = "",
    sequence: int = 0,
    at: datetime = NOW,
    **fields: Any,
) -> TaskStatus:
    """A report; the task's name is its id when none is given."""
    given = {"task_id": task_id, "name": name or task_id, "state": state}
    return TaskStatus.model_validate({**given, "sequence": sequence, "at": at, **fields})


def record(
    pod: str,
    index: int,
    task: str,
    state: TaskState | None = TaskState.RUNNING,
    *,
    goal: Goal = Goal.RUNNING,
    launch: int = 1,
    config: str = "c1",
    plan: str = "deploy",
    exit_code: int | None = None,
    message: str = "",
    ready: bool | None = None,
    **fields: Any,
) -> TaskRecord:
    """The newest launch of a task, the ``launch``-th; ``state`` None: nothing was heard of it."""
    name = task_instance_name(pod, index, task)
    task_id = f"svc__{name}__{launch}"
    heard: dict[str, Any] = {"exit_code": exit_code, "message": message, "ready": ready}
    given = {
        "task_id": task_id,
        "name": name,
        "pod": pod,
        "index": index,
        "task": task,
        "goal": goal,
        "resource_set": task,
        "agent": "a0",
        "queue": "queue-a0",
        "hostname": "host-a0",
        "config_id": config,
        "owner": "",
        "step": f"svc/{plan}/phase/step",
        "launched": NOW,
        "status": status(task_id, state, name=name, **heard) if state is not None else None,
    }
    return TaskRecord.model_validate({**given, **fields})


def record_of(
    spec: ServiceSpec,
    pod: str,
    index: int,
    state: TaskState | None = TaskState.RUNNING,
    *,
    name: str = "server",
    config_id: str = "old",
    ready: bool | None = None,
    **fields: Any,
) -> TaskRecord:
    """The launch of one task as the spec has it, in that state; None: not heard of yet."""
    asked = spec.pod(pod).task(name)
    of_the_spec: dict[str, Any] = {
        "goal": asked.goal,
        "resource_set": asked.resource_set,
        "check": asked.readiness_check is not None,
        "step": "",
    }
    fields = {**of_the_spec, "config": config_id, "ready": ready, **fields}
    return record(pod, index, name, state, **fields)


def by_name(*records: TaskRecord) -> dict[str, TaskRecord]:
    return {one.name: one for one in records}
