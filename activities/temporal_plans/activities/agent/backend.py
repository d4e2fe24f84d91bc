"""The built-in backend: the Pool places pods, and agents run their tasks."""

from datetime import timedelta
from uuid import uuid4

from temporal_plans.activities.pools.backend import Backend
from temporal_plans.activities.pools.pool_placement import PoolPlacement
from temporal_plans.domain.values.model import CompactValue
from temporal_plans.messages.tasks import KillInput, LaunchInput, TaskStatuses

_ATTEMPT_TIMEOUT = timedelta(hours=2)
"""A launch may download files, and a kill waits for grace periods."""

_HEARTBEAT_TIMEOUT = timedelta(seconds=10)


class AgentBackend(PoolPlacement, Backend):
    """All five verbs for callers outside workflows. A request to an agent is a standalone activity
    on its task queue and waits there until the agent takes it: callers set a timeout and retry."""

    async def launch(self, order: LaunchInput) -> TaskStatuses:
        return await self._execute(order.reservation.queue, "launch", order)

    async def kill(self, queue: str, order: KillInput) -> TaskStatuses:
        return await self._execute(queue, "kill", order)

    async def _execute(self, queue: str, activity: str, order: CompactValue) -> TaskStatuses:
        statuses: TaskStatuses = await self._client.execute_activity(
            activity,
            order,
            id=f"{activity}/{uuid4()}",
            task_queue=queue,
            result_type=TaskStatuses,
            start_to_close_timeout=_ATTEMPT_TIMEOUT,
            heartbeat_timeout=_HEARTBEAT_TIMEOUT,
        )
        return statuses
