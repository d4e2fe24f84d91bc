"""Why a task can't be run on this agent."""

from typing import Literal

from temporal_plans.domain.task import TaskState


class TaskRefused(Exception):
    """The task can't be started; ``message`` becomes its last status.

    ``ERROR``: as specified, it never can be here. ``FAILED``: something that it needs was not to be
    had, and another try may succeed. Messages name the field and never hold a secret's value.
    """

    def __init__(
        self,
        message: str,
        state: Literal[TaskState.ERROR, TaskState.FAILED] = TaskState.ERROR,
    ) -> None:
        super().__init__(message)
        self.state: Literal[TaskState.ERROR, TaskState.FAILED] = state
