"""Tasks that a service has yet to kill."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from temporal_plans.domain.task import TaskRef, TaskStatus
from temporal_plans.messages.cluster import KillInput, TaskStatuses, agent_queue
from temporal_plans.workflows.heartbeat import HEARTBEAT

PATIENCE = timedelta(minutes=10)
"""How long a kill waits for an agent that does not answer, before it is sent again: the agent may
come back after days, and run the task on."""


class Kills:
    """Kills each task once, however often it is asked to meanwhile, and tries until its agent
    answers or is gone for good. ``on_done`` is called after each, with what the agent answered:
    nothing, when it can't any more."""

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

    def forget(self, agent: str) -> None:
        """The agent is gone for good, and its tasks with it."""
        for task in list(self._doomed.values()):
            if task.agent == agent:
                del self._doomed[task.task_id]

    def _start(self, task: TaskRef, reason: str) -> None:
        self._under_way.add(task.task_id)
        asyncio.create_task(self._killed(task, reason))  # noqa: RUF006  # in _doomed

    async def _killed(self, task: TaskRef, reason: str) -> None:
        said = None
        while said is None and task.task_id in self._doomed:
            said = await self._answer(task, reason)
        self._doomed.pop(task.task_id, None)
        self._under_way.discard(task.task_id)
        self._on_done(said.statuses if said is not None else ())

    @staticmethod
    async def _answer(task: TaskRef, reason: str) -> TaskStatuses | None:
        """None when the agent was silent."""
        try:
            said: TaskStatuses = await workflow.execute_activity(
                "kill",
                KillInput(task_ids=(task.task_id,), reason=reason),
                result_type=TaskStatuses,
                task_queue=agent_queue(task.agent),
                schedule_to_close_timeout=PATIENCE,
                start_to_close_timeout=PATIENCE,
                heartbeat_timeout=HEARTBEAT,
                summary=f"kill {task.task_id}",
            )
        except ActivityError as error:
            workflow.logger.warning("task %s was not killed: %s", task.task_id, error.cause)
            return None if isinstance(error.cause, ActivityTimeoutError) else TaskStatuses()
        return said
