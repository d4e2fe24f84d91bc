"""The states of tasks, as agents report them (behaviour 3.5, 4.4)."""

from datetime import datetime
from enum import StrEnum

from temporal_plans.domain.values.model import AgentId, CompactValue, Name
from temporal_plans.domain.values.queues import AgentQueue


class TaskState(StrEnum):
    STAGING = "STAGING"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    KILLING = "KILLING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"
    ERROR = "ERROR"
    KILLED = "KILLED"
    LOST = "LOST"
    DROPPED = "DROPPED"
    GONE = "GONE"
    GONE_BY_OPERATOR = "GONE_BY_OPERATOR"
    UNREACHABLE = "UNREACHABLE"
    UNKNOWN = "UNKNOWN"

    @property
    def terminal(self) -> bool:
        """Whether the task will never run again (behaviour 4.4)."""
        return self in _TERMINAL


_TERMINAL = {
    TaskState.DROPPED,
    TaskState.ERROR,
    TaskState.FAILED,
    TaskState.FINISHED,
    TaskState.GONE,
    TaskState.GONE_BY_OPERATOR,
    TaskState.KILLED,
    TaskState.LOST,
}


class TaskRef(CompactValue):
    """A launched task, the agent that it was launched on, and the task queue on which it can be
    killed; empty when unknown: then it can't be killed."""

    task_id: Name
    agent: AgentId
    queue: AgentQueue = ""


class TaskStatus(CompactValue):
    """One report about one launched task.

    ``sequence`` grows with every report of the same task id, so that a late or repeated report is
    recognized. ``ready`` is None when the task has no readiness check. ``told``: the owner of the
    task has received this report already, as the result of its launch. ``agent`` and ``queue`` are
    those of the reporting agent. ``unknown``: the agent never had this task, or has deleted it; it
    will not start it.
    """

    task_id: Name
    name: Name
    state: TaskState
    sequence: int
    at: datetime
    message: str = ""
    exit_code: int | None = None
    ready: bool | None = None
    agent: AgentId = ""
    queue: AgentQueue = ""
    told: bool = False
    unknown: bool = False
