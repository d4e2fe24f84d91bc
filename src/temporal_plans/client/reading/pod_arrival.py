"""Whether a pod instance has come to the state that a command wants."""

from collections.abc import Mapping

from temporal_plans.domain.services.records import TaskRecord
from temporal_plans.messages.services import PodView


def has_arrived(pod: PodView, replaced: Mapping[str, str], *, paused: bool) -> bool:
    """Whether new launches of the tasks in ``replaced`` (earlier launches by task name; all tasks
    if it is empty) have reached their goals or, ``paused``, are paused."""
    records = [record for record in pod.tasks if not replaced or record.name in replaced]
    return len(records) >= len(replaced) and all(
        record.task_id != replaced.get(record.name) and _is_there(pod, record, paused=paused)
        for record in records
    )


def _is_there(pod: PodView, record: TaskRecord, *, paused: bool) -> bool:
    if paused:
        return pod.shown.get(record.name) == "PAUSED"
    return record.reached_goal
