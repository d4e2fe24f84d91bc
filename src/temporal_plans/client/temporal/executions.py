"""Runs of workflows, and how they ended."""

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from temporalio.client import WorkflowExecution, WorkflowExecutionStatus


class Ended(Enum):
    """How a closed workflow ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "cancelled"
    TERMINATED = "terminated"
    CONTINUED_AS_NEW = "continued as new"
    TIMED_OUT = "timed out"

    @property
    def clause(self) -> str:
        """The end as a part of a sentence: "was terminated", "has failed"."""
        own = self in (Ended.COMPLETED, Ended.FAILED, Ended.TIMED_OUT)
        return f"has {self.value}" if own else f"was {self.value}"


@dataclass(frozen=True)
class Execution:
    """A run of a workflow. ``ended`` is None while it is open, ``type`` is the workflow type."""

    id: str
    started: datetime
    closed: datetime | None = None
    ended: Ended | None = None
    run_id: str = ""
    type: str = ""


def execution_of(run: WorkflowExecution) -> Execution:
    return Execution(
        run.id, run.start_time, run.close_time, ended_as(run.status), run.run_id, run.workflow_type
    )


def ended_as(status: WorkflowExecutionStatus | None) -> Ended | None:
    """Return None for RUNNING, and for an open status of a newer server, such as PAUSED."""
    return None if status is None else Ended.__members__.get(status.name)
