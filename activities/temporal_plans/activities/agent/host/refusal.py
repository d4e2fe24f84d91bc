"""The refusal of a task by its agent."""

from collections.abc import Callable
from typing import Literal

from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Code, Reason, Refusal, RefusedError


class TaskRefused(RefusedError):
    """The task can't be started; the reasons become its last status.

    ``ERROR``: this agent can never run it as specified. ``FAILED``: something that it needs was not
    available, and a retry may succeed. Reasons name the field and contain no secret's value.
    """

    def __init__(
        self,
        *reasons: Reason,
        state: Literal[TaskState.ERROR, TaskState.FAILED] = TaskState.ERROR,
    ) -> None:
        code = Code.INVALID if state is TaskState.ERROR else Code.UNAVAILABLE
        super().__init__(Refusal(code=code, reasons=reasons))
        self.state: Literal[TaskState.ERROR, TaskState.FAILED] = state

    def redacted(self, redact: Callable[[str], str]) -> "TaskRefused":
        """Return the same refusal with every text of its reasons redacted."""
        reasons = (
            Reason(
                field=redact(one.field),
                problem=redact(one.problem),
                value=None if one.value is None else redact(str(one.value)),
                fix=redact(one.fix),
            )
            for one in self.reasons
        )
        return TaskRefused(*reasons, state=self.state)
