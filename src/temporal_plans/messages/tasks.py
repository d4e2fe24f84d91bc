"""Messages between workflows that launch tasks, and agents."""

from pydantic import Field

from temporal_plans.domain.cluster.reservations import Reservation
from temporal_plans.domain.services.spec import PodSpec
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.domain.values.compressed import CompressibleValue
from temporal_plans.domain.values.model import CompactValue, Duration


class LaunchInput(CompactValue):
    """Input of the agent's activity ``launch``; idempotent by task id.

    The pod's spec comes from the Service ``report_to`` (its query ``config``, cached by
    ``config_id``), or is ``inline``. Statuses go as signal ``task_statuses`` to ``report_to``.
    ``parameters`` are plan parameters: extra environment of all tasks launched here.
    """

    service: str
    report_to: str = ""
    config_id: str = ""
    inline: PodSpec | None = None
    pod: str
    index: int
    reservation: Reservation
    tasks: tuple[TaskLaunch, ...]
    parameters: dict[str, str] = {}
    step: str = ""


class TaskStatuses(CompactValue):
    """Statuses in order: the result of ``launch``, ``kill`` and ``run_task``, and the argument of
    the signal ``task_statuses`` from an agent to a Service, and from a Service to a step."""

    statuses: tuple[TaskStatus, ...] = ()


class KillInput(CompactValue):
    """Input of the agent's activity ``kill``, which returns when the tasks have ended; unknown ids
    are no error.

    ``grace`` overrides the tasks' own kill-grace-period.
    """

    task_ids: tuple[str, ...]
    grace: Duration | None = None
    reason: str = ""


class ReadLogInput(CompactValue):
    """Input of the agent's activity ``read_log``: read a part of a task's stdout or stderr.

    ``offset`` and ``limit`` are in bytes; a negative offset counts from the end. With ``wait`` the
    answer is delayed until there is text to read, the task has ended, or that time has passed.
    """

    task_id: str
    stream: str = "stdout"
    offset: int = 0
    limit: int = 65536
    wait: Duration | None = None


class ListTasksInput(CompactValue):
    """Input of the agent's activity ``list_tasks``. ``limit``: the number of tasks to list."""

    limit: int = Field(default=2000, ge=1, le=2000)


class ListedTask(CompactValue):
    """A task that runs. ``report_to`` is the workflow that gets its statuses; empty: none does."""

    task_id: str
    name: str
    report_to: str = ""


class ListedTasks(CompressibleValue):
    """Answer of ``list_tasks``: the tasks of an agent that have processes, by id. ``number``: of
    all, also above the limit."""

    tasks: tuple[ListedTask, ...] = ()
    number: int = 0


class LogChunk(CompactValue):
    """Answer of ``read_log``. ``next_offset`` is where to continue; ``ended``: the task has ended,
    and everything up to ``next_offset`` was read."""

    text: str = ""
    next_offset: int = 0
    ended: bool = False
