"""A task to start."""

from temporal_plans.domain.values.model import CompactValue, Name


class TaskLaunch(CompactValue):
    """A task to start, under an id that is used once.

    ``paused``: the agent runs the pause command in place of the task's own, without its checks
    (behaviour 6.8).
    """

    task_id: Name
    task: Name
    paused: bool = False
