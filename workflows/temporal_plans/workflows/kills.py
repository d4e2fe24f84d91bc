"""Tasks that a service has yet to kill."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import FailureError

from temporal_plans.domain.task import TaskRef, TaskStatus
from temporal_plans.messages.cluster import KillInput, TaskStatuses, agent_queue
from temporal_plans.workflows.heartbeat import HEARTBEAT

PATIENCE = timedelta(minutes=10)
"""How long a kill waits for an agent that does not answer. Such an agent is given up long before,
and when it comes back it reports the task, which is then judged anew."""


class Kills:
    """Kills each task once, however often it is asked to meanwhile. ``on_done`` is called after
    each, with what its agent answered: nothing, when that did not answer at all."""

    def __init__(
        self, doomed: Iterable[TaskRef], on_done: Callable[[tuple[TaskStatus, ...]], None]
    ) -> None:
        self._doomed = {task.task_id: task for task in doomed}
        self._under_way: set[str] = set()
        self._on_done = on_done

    @property
    def doomed(self) -> tuple[TaskRef, ...]:
        return tuple(self._doomed.values())

    def resume(self) -> None:
        """Kill what the run before left."""
        for task in self._doomed.values():
            if task.task_id not in self._under_way:  # a message may have come before
                self._start(task, "was to be killed")

    def kill(self, task: TaskRef, reason: str) -> None:
        if task.task_id not in self._doomed:
            self._doomed[task.task_id] = task
            self._start(task, reason)

    def _start(self, task: TaskRef, reason: str) -> None:
        self._under_way.add(task.task_id)
        asyncio.create_task(self._killed(task, reason))  # noqa: RUF006  # in _doomed

    async def _killed(self, task: TaskRef, reason: str) -> None:
        said = TaskStatuses()
        try:
            said = await workflow.execute_activity(
                "kill",
                KillInput(task_ids=(task.task_id,), reason=reason),
                result_type=TaskStatuses,
                task_queue=agent_queue(task.agent),
                schedule_to_close_timeout=PATIENCE,
                start_to_close_timeout=PATIENCE,
                heartbeat_timeout=HEARTBEAT,
                summary=f"kill {task.task_id}",
            )
        except FailureError as error:
            workflow.logger.warning("task %s was not killed: %s", task.task_id, error)
        del self._doomed[task.task_id]
        self._under_way.discard(task.task_id)
        self._on_done(said.statuses)
