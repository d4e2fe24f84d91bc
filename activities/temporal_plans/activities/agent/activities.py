"""The activities of an agent, on the task queue ``agent/<id>`` (messages.cluster)."""

import asyncio
import logging
import time

from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError

from temporal_plans.activities.agent.logs import STREAMS, read_piece
from temporal_plans.activities.agent.runner import TaskRunner, UnknownTask
from temporal_plans.activities.heartbeat import heartbeats
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


class Standing:
    """What the agent can tell of its place in the Pool, from the watches that it is asked for."""

    def __init__(self) -> None:
        self._watches = 0
        self._changed = asyncio.Event()
        self._doubted = False

    def watch_began(self, *, doubted: bool) -> None:
        """``doubted``: it was meant for another start of an agent under this id."""
        self._watches += 1
        self._doubted = self._doubted or doubted
        self._changed.set()

    def watch_ended(self) -> None:
        self._watches -= 1
        self._changed.set()

    def settled(self) -> None:
        """The Pool has just said that the id is this agent's."""
        self._doubted = False

    async def in_doubt(self, first: float, again: float) -> None:
        """Returns when it is time to ask the Pool: no watch began within ``first`` seconds, none
        within ``again`` seconds after one had ended, or one was meant for another agent."""
        patience = first
        while not self._doubted:
            self._changed.clear()
            if self._watches:
                patience = again
                await self._changed.wait()
                continue
            try:
                async with asyncio.timeout(patience):
                    await self._changed.wait()
            except TimeoutError:
                return


class AgentActivities:
    """What the plans ask of an agent. ``boot`` names this start of it."""

    def __init__(self, client: Client, runner: TaskRunner, boot: str) -> None:
        self._client = client
        self._runner = runner
        self._boot = boot
        self.standing = Standing()

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
        """The agent's life sign: tells the Pool, then heartbeats until it is cancelled.

        One that is meant for another start of the agent tells nothing: who runs is to be settled
        first, by registering again.
        """
        strange = order.boot not in ("", self._boot)
        self.standing.watch_began(doubted=strange)
        try:
            pool = self._client.get_workflow_handle(pool_id(order.pool))
            if not strange:
                await pool.signal("heard", HeardMessage(agent=order.agent, boot=self._boot))
            while True:
                activity.heartbeat()
                await asyncio.sleep(order.heartbeat.total_seconds() / 3)
        except RPCError as problem:
            _log.warning("%s did not hear of this agent: %s", order.pool, problem)
            raise
        finally:
            self.standing.watch_ended()
