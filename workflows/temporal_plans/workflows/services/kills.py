"""The pending kills of a service's tasks."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from temporal_plans.domain.tasks.statuses import TaskRef, TaskStatus
from temporal_plans.messages.tasks import KillInput, TaskStatuses
from temporal_plans.workflows.mechanics.heartbeat import HEARTBEAT_TIMEOUT

KILL_TIMEOUT = timedelta(minutes=10)
"""How long a kill waits for an agent before it is sent again: an agent may come back after days,
with the task still running."""


ACTIVITIES_LIMIT = 1500
"""Kills under way; the server takes 2,000 activities of one workflow, and refuses its tasks when
there are more."""

UNKNOWN_LIMIT = 500
"""Pending kills above which tasks are not killed that the service has never launched: every client
that may signal can report any number of them."""


class Kills:
    """Kills each task once, however often it is requested, and retries until the task's agent
    answers or is removed. ``on_done`` is called after each kill with the agent's answer: empty when
    the agent can't answer. A task without a known task queue can't be killed."""

    def __init__(
        self, pending: Iterable[TaskRef], on_done: Callable[[tuple[TaskStatus, ...]], None]
    ) -> None:
        self._pending = {task.task_id: task for task in pending}
        self._under_way: set[str] = set()
        self._slots = asyncio.Semaphore(ACTIVITIES_LIMIT)
        self._on_done = on_done

    @property
    def pending(self) -> tuple[TaskRef, ...]:
        return tuple(self._pending.values())

    def resume(self) -> None:
        """Send the kills that the previous run left."""
        for task in list(self._pending.values()):
            if task.task_id not in self._under_way:  # a message may have started it
                del self._pending[task.task_id]
                self.kill(task, "kill sent again")

    def kill(self, task: TaskRef, reason: str) -> None:
        """Kill a task, unless its kill is pending."""
        if not task.queue:
            text = "task %s on agent %s can't be killed: its task queue is unknown (%s)"
            workflow.logger.warning(text, task.task_id, task.agent, reason)
        elif task.task_id not in self._pending:
            self._pending[task.task_id] = task
            self._start(task, reason)

    def kill_unknown(self, task: TaskRef, reason: str) -> None:
        """Kill a task of which the service has no record, unless many kills are pending."""
        if len(self._pending) < UNKNOWN_LIMIT:
            self.kill(task, reason)
        else:
            workflow.logger.warning(
                "task %s on agent %s is not killed (%s): %d kills are pending",
                *(task.task_id, task.agent, reason, len(self._pending)),
            )

    def discard_agent(self, agent: str) -> None:
        """Drop the kills on a removed agent: its tasks are gone."""
        for task in list(self._pending.values()):
            if task.agent == agent:
                del self._pending[task.task_id]

    def _start(self, task: TaskRef, reason: str) -> None:
        self._under_way.add(task.task_id)
        asyncio.create_task(self._kill_until_done(task, reason))  # noqa: RUF006  # in _under_way

    async def _kill_until_done(self, task: TaskRef, reason: str) -> None:
        answer = None
        while answer is None and task.task_id in self._pending:
            async with self._slots:
                answer = await self._answer(task, reason)
        self._pending.pop(task.task_id, None)
        self._under_way.discard(task.task_id)
        self._on_done(answer.statuses if answer is not None else ())

    @staticmethod
    async def _answer(task: TaskRef, reason: str) -> TaskStatuses | None:
        """Return the agent's answer; None when it did not answer in time."""
        try:
            answer: TaskStatuses = await workflow.execute_activity(
                "kill",
                KillInput(task_ids=(task.task_id,), reason=reason),
                result_type=TaskStatuses,
                task_queue=task.queue,
                schedule_to_close_timeout=KILL_TIMEOUT,
                start_to_close_timeout=KILL_TIMEOUT,
                heartbeat_timeout=HEARTBEAT_TIMEOUT,
                summary=f"kill {task.task_id}",
            )
        except ActivityError as error:
            workflow.logger.warning("task %s was not killed: %s", task.task_id, error.cause)
            return None if isinstance(error.cause, ActivityTimeoutError) else TaskStatuses()
        return answer
