"""The launch record of a task that an earlier agent left, even if its file is damaged."""

import os
from datetime import UTC, datetime
from typing import NamedTuple

from temporal_plans.activities.agent.host.layout import TaskDir, identifier_of
from temporal_plans.activities.agent.host.records import LaunchRecord
from temporal_plans.activities.agent.supervisor.supervision import read_spec
from temporal_plans.domain.tasks.names import instance_of


class FoundTask(NamedTuple):
    """A task and what could not be read of it (for its status; empty: all could)."""

    record: LaunchRecord
    problem: str = ""


def found_task(directory: TaskDir) -> FoundTask | None:
    """Return the task in a directory; None if nothing was recorded, so that its order is retried.

    A record that can't be read is restored from the supervisor's memory, or from the copy with the
    task's start. Without a copy only the task's id and name are known: it can be killed, but its
    checks do not run, and its service gets no reports of it.
    """
    record = directory.task
    if record is not None:
        return FoundTask(record)
    if directory.is_empty:
        return None
    problem = directory.unreadable.get("task.json", "task.json is missing")
    if (copy := _copy(directory)) is not None:
        return FoundTask(copy, f"{problem}; it was restored from a copy")
    return FoundTask(_minimal_record(directory), f"{problem}; the task has no checks any more")


def _copy(directory: TaskDir) -> LaunchRecord | None:
    supervisor = directory.supervisor()
    spec = read_spec(supervisor) if supervisor else None
    if spec is not None and spec.record is not None:
        return spec.record
    return directory.started.record if directory.started else None


def _minimal_record(directory: TaskDir) -> LaunchRecord:
    supervisor = directory.supervisor()
    spec = read_spec(supervisor) if supervisor else None
    status = directory.status
    known = (spec and spec.task_id, status and status.task_id, identifier_of(directory.path))
    task_id = next((one for one in known if one), directory.path.name)
    return LaunchRecord(
        task_id=task_id,
        name=status.name if status else instance_of(task_id),
        reservation="",
        grace=spec.grace if spec else 0.0,
        created=datetime.fromtimestamp(os.stat(directory.path).st_mtime, UTC),
    )
