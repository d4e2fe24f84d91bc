"""The activities of an agent, on the task queue ``agent/<id>`` (messages.cluster)."""

import asyncio
import logging
import time

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from temporal_plans.activities.agent.heartbeat import heartbeats
from temporal_plans.activities.agent.logs import STREAMS, read_piece
from temporal_plans.activities.agent.runner import TaskRunner, UnknownTask
from temporal_plans.domain.task import TaskStatus
from temporal_plans.messages.cluster import (
    DestroyInput,
    HeardMessage,
    KillInput,
    LaunchInput,
    LogChunk,
    ReadLogInput,
    TaskStatuses,
    WatchInput,
    pool_id,
)

_log = logging.getLogger(__name__)

_LOG_POLL = 0.2


class AgentActivities:
    """What the plans ask of an agent. ``boot`` names this start of it."""

    def __init__(self, client: Client, runner: TaskRunner, boot: str) -> None:
        self._client = client
        self._runner = runner
        self._boot = boot
        self.watched = 0
        """how many ``watch`` activities run: none for long, and the pool has forgotten us"""

    @activity.defn(name="launch")
    async def launch(self, order: LaunchInput) -> TaskStatuses:
        """Starts tasks; their first statuses. What can't be started has status ERROR or FAILED."""
        async with heartbeats() as progress:
            return TaskStatuses(statuses=await self._runner.launch(order, progress))

    @activity.defn(name="run_task")
    async def run_task(self, order: LaunchInput) -> TaskStatus:
        """Starts one task and waits for its end; its last status.

        Tried again, it waits for the same task. Cancelled by its workflow, it ends the task; a
        stop of the agent leaves it running for the next try.
        """
        if len(order.tasks) != 1:
            raise ApplicationError(
                f"run_task runs one task, not {len(order.tasks)}", non_retryable=True
            )
        task_id = order.tasks[0].task_id
        async with heartbeats() as progress:
            try:
                await self._runner.launch(order, progress)
                return (await self._runner.wait(task_id)).but(told=True)
            except asyncio.CancelledError:
                why = activity.cancellation_details()
                if why is not None and (why.cancel_requested or why.not_found):
                    await self._runner.kill((task_id,), None, "the step was cancelled")
                raise

    @activity.defn(name="kill")
    async def kill(self, order: KillInput) -> TaskStatuses:
        """Ends tasks; their last statuses, once they are dead."""
        async with heartbeats():
            statuses = await self._runner.kill(order.task_ids, order.grace, order.reason)
            return TaskStatuses(statuses=statuses)

    @activity.defn(name="destroy")
    async def destroy(self, order: DestroyInput) -> None:
        """Ends a reservation's tasks and deletes their sandboxes and its volumes."""
        async with heartbeats():
            await self._runner.destroy(order.reservation_id)

    @activity.defn(name="read_log")
    async def read_log(self, order: ReadLogInput) -> LogChunk:
        """A piece of a task's stdout or stderr."""
        if order.stream not in STREAMS:
            raise ApplicationError(
                f"stream: {order.stream!r} is neither stdout nor stderr", non_retryable=True
            )
        try:
            task = self._runner.task(order.task_id)
        except UnknownTask as problem:
            raise ApplicationError(str(problem), type="UnknownTask", non_retryable=True) from None
        path = task.directory.sandbox / order.stream
        deadline = time.monotonic() + (order.wait.total_seconds() if order.wait else 0)
        async with heartbeats():
            offset = order.offset
            while True:
                over = task.ended.is_set()  # looked at before the file: what came last is read
                piece = await asyncio.to_thread(read_piece, path, offset, order.limit, over)
                if piece.text or piece.ended or time.monotonic() >= deadline:
                    return piece
                offset = piece.next_offset if offset < 0 and path.exists() else offset
                await asyncio.sleep(_LOG_POLL)

    @activity.defn(name="watch")
    async def watch(self, order: WatchInput) -> None:
        """The agent's life sign: tells the Pool, then heartbeats until it is cancelled."""
        self.watched += 1
        try:
            pool = self._client.get_workflow_handle(pool_id(order.pool))
            await pool.signal("heard", HeardMessage(agent=order.agent, boot=self._boot))
            while True:
                activity.heartbeat()
                await asyncio.sleep(order.heartbeat.total_seconds() / 3)
        except RPCError as problem:
            _log.warning("%s did not hear of this agent: %s", order.pool, problem)
            raise
        finally:
            self.watched -= 1
