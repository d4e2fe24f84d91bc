"""What became of a task: the states an agent reports (reference 3.5, 4.4)."""

from datetime import datetime
from enum import StrEnum

from temporal_plans.domain.model import AgentId, CompactValue


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
        """The task will never run again (reference 4.4)."""
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
    """A launched task, and the agent that it was launched on."""

    task_id: str
    agent: AgentId


class TaskStatus(CompactValue):
    """One report about one launched task.

    ``sequence`` grows with every report of the same task id, so that a late or repeated one is
    known. ``ready`` is None when the task has no readiness check. ``told`` is true when the owner
    of the task has had this report already, as the result of its launch.
    """

    task_id: str
    name: str
    state: TaskState
    sequence: int
    at: datetime
    message: str = ""
    exit_code: int | None = None
    ready: bool | None = None
    agent: AgentId = ""
    told: bool = False
