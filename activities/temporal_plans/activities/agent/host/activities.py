"""The activities of an agent, on the task queue of its own (messages.tasks, messages.pools)."""

import asyncio
import logging
import os
import time
from pathlib import Path

from temporalio import activity
from temporalio.client import Client
from temporalio.service import RPCError

from temporal_plans.activities.agent.host.logs import STREAMS, read_chunk
from temporal_plans.activities.agent.host.runner import TaskRunner, UnknownTask
from temporal_plans.activities.agent.host.threads import ThreadProbe, Threads
from temporal_plans.activities.agent.sandbox.beneath import NotRegular
from temporal_plans.activities.mechanics.heartbeat import heartbeats
from temporal_plans.activities.mechanics.refusals import refusal_error
from temporal_plans.domain.tasks.statuses import TaskStatus
from temporal_plans.domain.values.refusal import Code, Reason, Refusal
from temporal_plans.messages.addresses import pool_id
from temporal_plans.messages.pools import DestroyInput, HeardMessage, WatchInput
from temporal_plans.messages.tasks import (
    KillInput,
    LaunchInput,
    ListedTasks,
    ListTasksInput,
    LogChunk,
    ReadLogInput,
    TaskStatuses,
)

_log = logging.getLogger(__name__)

# In seconds.
_LOG_POLL_INTERVAL = 0.2
_READ_TIMEOUT = 4.0  # less than clients wait for their answer

_TIMEOUT_TOLERANCE = 0.2

_READING_THREADS = 4


class WatchMonitor:
    """Detects from the Pool's ``watch`` activities whether the Pool still counts on this agent."""

    def __init__(self) -> None:
        self._watches = 0
        self._changed = asyncio.Event()
        self._wrong_boot = False

    def watch_started(self, *, wrong_boot: bool) -> None:
        """Count a watch. ``wrong_boot``: it is for another start of an agent under this id."""
        self._watches += 1
        self._wrong_boot = self._wrong_boot or wrong_boot
        self._changed.set()

    def watch_ended(self) -> None:
        self._watches -= 1
        self._changed.set()

    def confirm(self) -> None:
        """Note that the Pool has just accepted this agent's registration."""
        self._wrong_boot = False

    async def wait_until_unconfirmed(self, first_timeout: float, next_timeout: float) -> None:
        """Return when the agent must register again: no watch started within ``first_timeout``
        seconds, none within ``next_timeout`` seconds after one had ended, or one was for another
        start of an agent."""
        timeout = first_timeout
        while not self._wrong_boot:
            self._changed.clear()
            if self._watches:
                timeout = next_timeout
                await self._changed.wait()
                continue
            try:
                async with asyncio.timeout(timeout):
                    await self._changed.wait()
            except TimeoutError:
                return


def _kill_reason(elapsed: float) -> str:
    """Return why the task of a cancelled activity must be killed; empty when it goes on.

    The server does not say whether an activity that it no longer knows was cancelled or has timed
    out, so the time decides. A heartbeat that came too late is no reason: the next attempt takes
    the task over.
    """
    details, timeout = activity.cancellation_details(), activity.info().start_to_close_timeout
    if timeout is not None and elapsed > timeout.total_seconds() - _TIMEOUT_TOLERANCE:
        return f"the step timed out after {timeout.total_seconds():g} s"
    if details and (details.cancel_requested or details.not_found):
        return "the step was cancelled"
    return ""


class AgentActivities:
    """The activities of one agent. ``boot`` identifies this start of its process."""

    def __init__(self, client: Client, runner: TaskRunner, boot: str) -> None:
        self._client = client
        self._runner = runner
        self._boot = boot
        self._readers = Threads("read", _READING_THREADS)
        self.probe = ThreadProbe()
        self.watches = WatchMonitor()
        self._watched = False

    def repeat_statuses(self) -> None:
        """Send the last status of every task again, for services that have forgotten it."""
        self._runner.repeat_statuses()

    @activity.defn(name="launch")
    async def launch(self, order: LaunchInput) -> TaskStatuses:
        """Start tasks and return their first statuses: ERROR or FAILED if a task can't start."""
        async with heartbeats() as progress:
            return TaskStatuses(statuses=await self._runner.launch(order, progress))

    @activity.defn(name="run_task")
    async def run_task(self, order: LaunchInput) -> TaskStatus:
        """Start one task, wait for its end and return its last status.

        A retry waits for the same task. A cancellation by the workflow kills the task; a stop of
        the agent leaves it running for the next attempt.
        """
        if len(order.tasks) != 1:
            several = Reason(
                field="tasks",
                problem="run_task runs exactly one task",
                value=len(order.tasks),
                fix="use launch",
            )
            raise refusal_error(Refusal(code=Code.INVALID, reasons=(several,)))
        task_id, started = order.tasks[0].task_id, time.monotonic()
        async with heartbeats() as progress:
            try:
                await self._runner.launch(order, progress)
                return (await self._runner.wait(task_id)).but(told=True)
            except asyncio.CancelledError:
                reason = _kill_reason(time.monotonic() - started)
                if reason:
                    await self._runner.kill((task_id,), None, reason)
                raise

    @activity.defn(name="kill")
    async def kill(self, order: KillInput) -> TaskStatuses:
        """Kill tasks and return their last statuses, once they have ended."""
        async with heartbeats():
            statuses = await self._runner.kill(order.task_ids, order.grace, order.reason)
            return TaskStatuses(statuses=statuses)

    @activity.defn(name="destroy")
    async def destroy(self, order: DestroyInput) -> None:
        """Kill a reservation's tasks and delete their sandboxes and its volumes."""
        async with heartbeats():
            await self._runner.destroy(order.reservation_id)

    @activity.defn(name="list_tasks")
    async def list_tasks(self, order: ListTasksInput) -> ListedTasks:
        """Return the tasks that run."""
        running = self._runner.running()
        return ListedTasks(tasks=running[: order.limit], number=len(running))

    @activity.defn(name="read_log")
    async def read_log(self, order: ReadLogInput) -> LogChunk:
        """Return a chunk of a task's stdout or stderr. With ``wait``, wait for output that long."""
        if order.stream not in STREAMS:
            reason = Reason(
                field="stream", problem="unknown", value=order.stream, fix="use stdout or stderr"
            )
            raise refusal_error(Refusal(code=Code.INVALID, reasons=(reason,)))
        try:
            task = self._runner.task(order.task_id)
        except UnknownTask as problem:
            refusal = Refusal.of(Code.NOT_FOUND, str(problem))
            raise refusal_error(refusal, type="UnknownTask") from None
        path = task.directory.sandbox / order.stream
        deadline = time.monotonic() + (order.wait.total_seconds() if order.wait else 0)
        async with heartbeats():
            offset = order.offset
            while True:
                ended = (
                    task.ended.is_set()
                )  # checked before the file, so that the last output is read
                chunk = await self._read(path, offset, order.limit, ended)
                if chunk.text or chunk.ended or time.monotonic() >= deadline:
                    return chunk
                offset = chunk.next_offset if offset < 0 and os.path.lexists(path) else offset
                await asyncio.sleep(_LOG_POLL_INTERVAL)

    async def _read(self, path: Path, offset: int, limit: int, ended: bool) -> LogChunk:
        try:
            async with asyncio.timeout(_READ_TIMEOUT):
                return await self._readers.run(read_chunk, path, offset, limit, ended)
        except TimeoutError:
            problem = f"was not read within {_READ_TIMEOUT:g} s; is the agent's disk well?"
        except NotRegular as error:
            problem = f"{error.strerror}: the task has replaced it"
        except OSError as error:
            problem = f"can't be read: {error.strerror}"
        refusal = Refusal.of(Code.UNAVAILABLE, problem, field=path.name)
        raise refusal_error(refusal, type="LogUnreadable")

    @activity.defn(name="watch")
    async def watch(self, order: WatchInput) -> None:
        """Show that the agent is alive: signal the Pool, then heartbeat until cancelled. An agent
        whose threads are stuck sends neither.

        A watch for another start of the agent sends no signal: the agent registers again first,
        which decides which of them keeps the id.

        With every watch but the first of this process, before which all was reported, the agent
        sends the last status of each task again: the Pool may have come back from a backup.
        """
        wrong_boot = order.boot not in ("", self._boot)
        self.watches.watch_started(wrong_boot=wrong_boot)
        if self._watched:  # the server was away, and may have come back from a backup
            self.repeat_statuses()
        self._watched = True
        try:
            pool = self._client.get_workflow_handle(pool_id(order.pool))
            if not wrong_boot and not self.probe.stuck():
                await pool.signal("heard", HeardMessage(agent=order.agent, boot=self._boot))
            while True:
                if not self.probe.stuck():
                    activity.heartbeat()
                await asyncio.sleep(order.heartbeat.total_seconds() / 3)
        except RPCError as problem:
            _log.warning(
                "pool %s was not notified of agent %s: %s", order.pool, order.agent, problem
            )
            raise
        finally:
            self.watches.watch_ended()
