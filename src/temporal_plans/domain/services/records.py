"""The records that a service keeps of its tasks: the newest launch of each."""

from datetime import datetime

from temporal_plans.domain.tasks.goal import Goal
from temporal_plans.domain.tasks.statuses import TaskRef, TaskState, TaskStatus
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.domain.values.queues import AgentQueue
from temporal_plans.domain.values.text import shortened

EARLIER_LIMIT = 4
"""Earlier launches that a record keeps: with the newest, as many as agents keep sandboxes of."""

_MESSAGE_LIMIT = 100
"""Characters of the message of an earlier launch."""


class EarlierLaunch(CompactValue):
    """A launch of a task before the newest one; ``status`` is its last."""

    task_id: str
    agent: str
    queue: AgentQueue
    launched: datetime
    status: TaskStatus | None = None


class TaskRecord(CompactValue):
    """The newest launch of one task instance (``hello-0-server``).

    ``queue`` is its agent's task queue, on which it is killed and its log read. ``owner`` is the
    workflow that follows it, empty when none does; ``kills`` are the launches that were to be
    killed for it. ``asked``: when its step requested it. ``check``: it has a readiness check.
    ``paused``: it was launched paused (behaviour 6.8). ``permanently_failed``: its pod is to be
    replaced on other resources (behaviour 6.4); reset when the pod has moved. ``retired``: no plan
    launches it any more (behaviour 4.4), so recovery ignores it until a plan launches it again.
    ``followed``: its owner is not the step that launched it, and may not have that one's reports.
    ``running_since``: when it was first reported RUNNING. ``launches``: how often it was launched;
    ``earlier``: the launches before this one, the newest first, as far as they are kept.
    """

    task_id: str
    name: str
    pod: str
    index: int
    task: str
    goal: str
    resource_set: str
    agent: str
    queue: AgentQueue
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
    retired: bool = False
    followed: bool = False
    running_since: datetime | None = None
    launches: int = 1
    earlier: tuple[EarlierLaunch, ...] = ()

    def after(self, previous: "TaskRecord | None") -> "TaskRecord":
        """Return the record as that of the launch after ``previous``."""
        if previous is None:
            return self
        last = EarlierLaunch(
            task_id=previous.task_id,
            agent=previous.agent,
            queue=previous.queue,
            launched=previous.launched,
            status=_shortened(previous.status),
        )
        return self.but(
            launches=previous.launches + 1, earlier=(last, *previous.earlier)[:EARLIER_LIMIT]
        )

    def with_end_of_earlier(self, status: TaskStatus) -> "TaskRecord":
        """Return the record with the last status of an earlier launch, if it has that launch."""
        return self.but(
            earlier=tuple(
                launch.but(status=_shortened(status))
                if launch.task_id == status.task_id
                else launch
                for launch in self.earlier
            )
        )

    def with_texts_of(self, limit: int) -> "TaskRecord":
        """Return the record with the message of its status cut to ``limit`` characters, and without
        earlier launches."""
        if self.earlier:
            return self.but(earlier=()).with_texts_of(limit)
        if self.status is None or len(self.status.message) <= limit:
            return self
        return self.but(status=self.status.but(message=shortened(self.status.message, limit)))

    @property
    def ref(self) -> TaskRef:
        return TaskRef(task_id=self.task_id, agent=self.agent, queue=self.queue)

    @property
    def live(self) -> bool:
        """Whether it is not known to have ended."""
        return self.status is None or not self.status.state.terminal

    @property
    def runs(self) -> bool:
        """Whether it was last reported RUNNING."""
        return self.status is not None and self.status.state is TaskState.RUNNING

    @property
    def reached_goal(self) -> bool:
        """Whether it has reached the goal of its launch: runs and is ready, or has finished
        (behaviour 3.6, configuration aside)."""
        if self.status is None:
            return False
        if self.goal == Goal.RUNNING:
            ready = self.paused or not self.check or self.status.ready is True
            return self.runs and ready
        return self.status.state is TaskState.FINISHED


def _shortened(status: TaskStatus | None) -> TaskStatus | None:
    return status and status.but(message=shortened(status.message, _MESSAGE_LIMIT))
