"""Whether a pod instance has come to the state that a command wants."""

from collections.abc import Mapping

from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.messages.services import PodView


def has_arrived(pod: PodView, replaced: Mapping[str, str], *, paused: bool) -> bool:
    """Whether new launches of the tasks in ``replaced`` (earlier launches by task name; all tasks
    if it is empty) have reached their goals or, ``paused``, are paused. Of tasks that are to end it
    is enough that they run again, or have ended."""
    records = [record for record in pod.tasks if not replaced or record.name in replaced]
    return len(records) >= len(replaced) and all(
        stays_down(record) or _is_back(pod, record, replaced, paused) for record in records
    )


def stays_down(record: TaskRecord) -> bool:
    """Whether a task has ended and is not recovered: nothing recovers tasks with the goals ONCE and
    FINISH, which only plans that have them launch (behaviour 6.2), and retired ones."""
    return not record.live and _is_to_end(record)


def _is_to_end(record: TaskRecord) -> bool:
    return record.goal != Goal.RUNNING or record.retired


def _is_back(pod: PodView, record: TaskRecord, replaced: Mapping[str, str], paused: bool) -> bool:
    if record.task_id == replaced.get(record.name):
        return False
    if paused:
        return pod.shown.get(record.name) == "PAUSED"
    return record.reached_goal or (record.runs and _is_to_end(record))
