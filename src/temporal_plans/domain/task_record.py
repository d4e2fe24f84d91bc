"""What a service remembers of its tasks: the newest launch of each."""

from datetime import datetime

from temporal_plans.domain.model import CompactValue
from temporal_plans.domain.service import Goal
from temporal_plans.domain.task import TaskRef, TaskState, TaskStatus


class TaskRecord(CompactValue):
    """The newest launch of one task instance (``hello-0-server``).

    ``owner`` is the workflow that follows it, empty when nobody does any more; ``kills`` are the
    launches that had to make room for it. ``asked``: when its step wanted it. ``check``: it has a
    readiness check. ``paused``: it was launched in its paused shape (reference 6.8).
    ``permanently_failed``: its pod is to be replaced on other resources (reference 6.4); gone when
    it has moved. ``off``: every plan had dropped it (reference 4.4), so nobody misses it until one
    launches it anew. ``running_since``: when it was first heard to run.
    """

    task_id: str
    name: str
    pod: str
    index: int
    task: str
    goal: str
    resource_set: str
    agent: str
    hostname: str
    config_id: str
    owner: str
    step: str
    launched: datetime
    asked: datetime | None = None
    status: TaskStatus | None = None
    kills: tuple[TaskRef, ...] = ()
    check: bool = False
    paused: bool = False
    permanently_failed: bool = False
    off: bool = False
    running_since: datetime | None = None

    @property
    def ref(self) -> TaskRef:
        return TaskRef(task_id=self.task_id, agent=self.agent)

    @property
    def live(self) -> bool:
        """Not known to have ended."""
        return self.status is None or not self.status.state.terminal

    @property
    def reached_goal(self) -> bool:
        """Runs and is ready, or has finished, as it was launched to (reference 3.6, configuration
        aside)."""
        if self.status is None:
            return False
        if self.goal == Goal.RUNNING:
            ready = self.paused or not self.check or self.status.ready is True
            return self.status.state is TaskState.RUNNING and ready
        return self.status.state is TaskState.FINISHED
