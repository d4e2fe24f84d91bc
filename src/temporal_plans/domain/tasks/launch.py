"""A task to start."""

from temporal_plans.domain.values.model import CompactValue


class TaskLaunch(CompactValue):
    """A task to start, under an id that is used once.

    ``paused``: the agent runs the pause command in place of the task's own, without its checks
    (behaviour 6.8).
    """

    task_id: str
    task: str
    paused: bool = False
