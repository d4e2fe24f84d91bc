"""Numbers, saves and sends the statuses of an agent's tasks."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from temporal_plans.activities.agent.host.agent_task import AgentTask
from temporal_plans.activities.agent.host.finishing import finish_despite_cancellation
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.host.status_outbox import StatusOutbox
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus

_log = logging.getLogger(__name__)

OutboxFor = Callable[[Callable[[TaskStatus], None]], StatusOutbox]
"""Makes an outbox that calls a function for each delivered status."""


class StatusReports:
    """The statuses of one agent's ``tasks``, by task id."""

    def __init__(
        self, settings: AgentSettings, tasks: Mapping[str, AgentTask], outbox_for: OutboxFor
    ) -> None:
        self._settings = settings
        self._tasks = tasks
        self._outbox = outbox_for(self._mark_delivered)

    async def close(self, timeout: float) -> None:
        """Deliver the remaining statuses for at most ``timeout`` seconds, then stop."""
        await self._outbox.close(timeout=timeout)

    async def report(
        self,
        task: AgentTask,
        state: TaskState,
        message: str,
        *,
        ready: bool | None = None,
        exit_code: int | None = None,
        returned: bool = False,
    ) -> TaskStatus:
        """Number a status, save it and send it."""
        record = task.record
        async with task.reporting:
            before = task.latest
            if before is not None and before.state.terminal:
                return before
            status = TaskStatus(
                task_id=record.task_id,
                name=record.name,
                state=state,
                sequence=max(task.first_sequence, before.sequence + 1 if before else 0),
                at=datetime.now(UTC),
                message=task.redactor.text(message),
                exit_code=exit_code,
                ready=ready,
                agent=self._settings.id,
                queue=self._settings.queue,
                told=returned,
            )
            await finish_despite_cancellation(
                asyncio.to_thread(self._save_status, task, status)  # a later one is saved later
            )
            task.latest = status
            self.post(task, status)
            return status

    def _save_status(self, task: AgentTask, status: TaskStatus) -> None:
        try:
            task.save_record()
            task.directory.status = status
        except OSError as problem:  # report the status even if the disk is full
            _log.error("the status of %s can't be saved: %s", status.task_id, problem)

    def post(self, task: AgentTask, status: TaskStatus) -> None:
        self._outbox.post(task.record.report_to, status)

    def _mark_delivered(self, status: TaskStatus) -> None:
        task = self._tasks.get(status.task_id)
        if task is not None:
            task.delivered = max(task.delivered, status.sequence)
