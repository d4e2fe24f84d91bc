"""The tasks of one agent: starts, monitors, kills and reports them.

One ``TaskRunner`` lives as long as the agent process. The disk is the source of truth (``layout``)
and supervisors run the tasks (``supervision``); the state in memory is rebuilt from them when an
agent starts.
"""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporal_plans.activities.agent.host.adoption import found_task
from temporal_plans.activities.agent.host.agent_task import AgentTask, gone_ending
from temporal_plans.activities.agent.host.finishing import finish_despite_cancellation
from temporal_plans.activities.agent.host.layout import TaskDir, WorkDir
from temporal_plans.activities.agent.host.pods import PodSource
from temporal_plans.activities.agent.host.preparation import (
    Preparation,
    PreparedLaunch,
    task_record,
)
from temporal_plans.activities.agent.host.records import (
    Ending,
    KillRecord,
    exit_ending,
    killed_orphan_ending,
    never_started_ending,
)
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.host.status_reports import OutboxFor, StatusReports
from temporal_plans.activities.agent.host.task_checks import TaskChecks
from temporal_plans.activities.agent.host.task_places import TaskPlaces
from temporal_plans.activities.agent.host.task_ports import TaskPorts
from temporal_plans.activities.agent.host.threads import Threads
from temporal_plans.activities.agent.host.tidying import expired_marks, expired_sandboxes
from temporal_plans.activities.agent.sandbox.removal import remove_tree
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.strays import Trace, end_strays
from temporal_plans.activities.agent.supervisor.supervision import (
    RunState,
    SpawnOutcome,
    compile_supervisor,
    request_end,
    run_state_of,
    spawn,
    start_of,
    wait_for_orphan_end,
    wait_for_supervisor_end,
)
from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.domain.tasks.launch import TaskLaunch
from temporal_plans.domain.tasks.names import instance_of
from temporal_plans.domain.tasks.statuses import TaskState, TaskStatus
from temporal_plans.domain.values.refusal import Reason
from temporal_plans.messages.tasks import LaunchInput, ListedTask

_log = logging.getLogger(__name__)

# In seconds.
_SUPERVISOR_START_TIMEOUT = 5.0
_START_POLL_INTERVAL = 0.01
_STOP_TIMEOUT = 10.0
_KILL_RETRY_INTERVAL = 1.0
_TIDY_INTERVAL = 600.0
_LATE_START_POLL_INTERVAL = 0.5

_DELETING_THREADS = 2

_UNSAVED_LIMIT = 1000
"""Statuses that an earlier agent may have sent and not saved, as on a full disk: one with the
sequence of another is ignored by its receivers."""

Progress = Callable[[str], None]


class UnknownTask(Exception):
    """This agent has no such task: it never ran here, or its sandbox was deleted."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"this agent has no task {task_id!r}; it ran elsewhere, or its sandbox was deleted"
        )


class TaskRunner:
    """Implements the agent's activities. All methods are idempotent by task id."""

    def __init__(
        self,
        settings: AgentSettings,
        work_dir: WorkDir,
        pods: PodSource,
        preparation: Preparation,
        outbox_for: OutboxFor,
        remove_cgroup: Callable[[str], None],
        kill_cgroup: Callable[[str], None] = lambda task_id: None,
    ) -> None:
        self._settings = settings
        self._work_dir = work_dir
        self._pods = pods
        self._preparation = preparation
        self._remove_cgroup = remove_cgroup
        self._program = work_dir.supervisor
        self._tasks: dict[str, AgentTask] = {}
        self._reports = StatusReports(settings, self._tasks, outbox_for)
        self._places = TaskPlaces(self._tasks, self._reports, kill_cgroup)
        self.ports = TaskPorts(self._tasks)
        self._checks = TaskChecks(settings, self._reports, self._monitor, self._kill_in_background)
        self._background: set[asyncio.Task[None]] = set()
        self._deleting = Threads("delete", _DELETING_THREADS)

    # --- start and stop -------------------------------------------------------------------------

    def start(self) -> None:
        """Adopt the tasks that an earlier agent left in the work directory. Raises OSError."""
        try:
            compile_supervisor(self._program)
        except OSError as problem:  # such as a full disk; slower starts are better than no agent
            _log.warning("the supervisor can't be compiled: %s", problem)
            self._program = Path(shim.__file__)
        for directory in self._work_dir.tasks():
            try:
                self._find(directory)
            except OSError as problem:
                _log.error("%s can't be read and is left alone: %s", directory.path, problem)
        self._run_in_background(self._tidy_regularly(), "tidy")

    def _find(self, directory: TaskDir) -> None:
        found = found_task(directory)
        if found is None:  # created but not started; the order is retried
            remove_tree(directory.path)
            return
        task = AgentTask(directory, found.record, found.problem)
        self._tasks[found.record.task_id] = task
        task.latest = directory.status
        task.first_sequence = (task.latest.sequence if task.latest else 0) + _UNSAVED_LIMIT
        if "status.json" in directory.unreadable:
            task.first_sequence = _sequence_above_all()
        task.adopting = True
        self._run_in_background(self._adopt(task), f"adopt {found.record.task_id}")

    async def stop(self) -> None:
        """Stop monitoring. Tasks keep running, unless ``kill_tasks_on_exit`` is set."""
        if self._settings.kill_tasks_on_exit:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_TIMEOUT):
                    await self.kill(tuple(self._tasks), timedelta(), "the agent stopped")
        running = [*self._background, *(m for task in self._tasks.values() for m in task.monitors)]
        for job in running:
            job.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._reports.close(timeout=2.0)

    async def _adopt(self, task: AgentTask) -> None:
        try:
            await self._resume(task)
        finally:
            task.adopting = False

    async def _resume(self, task: AgentTask) -> None:
        if task.latest is not None:
            self._reports.post(task, task.latest.but(told=False))
        if task.has_ended:
            task.ended.set()
            return
        if run_state_of(task.directory) is RunState.NOT_STARTED:
            await asyncio.sleep(_SUPERVISOR_START_TIMEOUT)  # its supervisor may just be starting
        async with task.starting:
            awaits_order = task.latest is None and task.kill is None
            if run_state_of(task.directory) is RunState.NOT_STARTED and awaits_order:
                return
            if not task.monitored:
                await self._report_and_monitor(task, returned=False)
        await self._report_problems(task)

    async def _report_problems(self, task: AgentTask) -> None:
        """Report what could not be read of a task that runs, and save its record again."""
        problems = (task.problem, *task.directory.unreadable.values())
        text = "; ".join(dict.fromkeys(one for one in problems if one))
        if text and task.latest is not None and not task.has_ended:
            await self._reports.report(task, TaskState.RUNNING, text, ready=task.latest.ready)

    # --- launching ------------------------------------------------------------------------------

    async def launch(self, order: LaunchInput, progress: Progress) -> tuple[TaskStatus, ...]:
        """Start the order's tasks and return the first status of each.

        A task that can't be started has an ERROR or FAILED status. Raises errors that a retry may
        cure, such as a Service that doesn't answer.
        """
        statuses = await asyncio.gather(
            *(self._launch(order, launch, progress) for launch in order.tasks)
        )
        return tuple(status.but(told=True) for status in statuses)

    async def wait(self, task_id: str) -> TaskStatus:
        """Wait until a task has ended and return its last status. Raises UnknownTask."""
        task = self.task(task_id)
        await task.ended.wait()
        assert task.latest is not None
        return task.latest

    async def _launch(
        self, order: LaunchInput, launch: TaskLaunch, progress: Progress
    ) -> TaskStatus:
        task = self._known(launch.task_id)
        if task is None:
            task = self._tasks[launch.task_id] = AgentTask(
                self._work_dir.task(launch.task_id),
                task_record(order, launch, None),
            )
        async with task.starting:
            if task.latest is not None:
                return task.latest
            try:
                if run_state_of(task.directory) is not RunState.NOT_STARTED:
                    return await self._report_and_monitor(task, returned=True)
                await self._places.take(task)
                return await self._prepare_and_start(task, order, launch, progress)
            except TaskRefused as problem:
                return await self._report_refusal(task, Ending(problem.state, str(problem)))
            except OSError as problem:
                if run_state_of(task.directory) is not RunState.NOT_STARTED:
                    raise  # it runs, and a retry of this order finds it
                place = problem.filename or "the work directory"
                return await self._report_refusal(
                    task, Ending(TaskState.ERROR, f"{place}: {problem.strerror or problem}")
                )
            finally:
                task.holds_place = False

    async def _prepare_and_start(
        self, task: AgentTask, order: LaunchInput, launch: TaskLaunch, progress: Progress
    ) -> TaskStatus:
        if self._work_dir.forbidden_mark(launch.task_id).exists():
            kill = KillRecord(grace=0, reason="killed")
            return await self._report_end(task, never_started_ending(kill), returned=True)
        task.preparing = asyncio.current_task()
        try:
            requested = await self._pods.pod(order)
            task.record = task_record(order, launch, requested).but(
                volumes=self._preparation.volume_paths(order)
            )
            task.save_record()
            if not launch.paused:
                await self.ports.wait_until_free(task)
            prepared = await self._preparation.prepare(
                order, launch, requested, task.directory, progress
            )
            task.redactor = Redactor(map(os.fsencode, prepared.spec.hidden))
        except asyncio.CancelledError:
            request, job = task.kill, asyncio.current_task()
            if request is None or job is None:
                raise
            job.uncancel()
            return await self._report_end(task, never_started_ending(request), returned=True)
        finally:
            task.preparing = None
        return await finish_despite_cancellation(self._start(task, prepared))

    async def _report_refusal(self, task: AgentTask, end: Ending) -> TaskStatus:
        """Report a task that is not started, after forbidding its start."""
        with suppress(OSError):
            self._request_kill(task, KillRecord(grace=0, reason=end.message))
        return await self._report_end(task, end, returned=True)

    async def _start(self, task: AgentTask, prepared: PreparedLaunch) -> TaskStatus:
        """Start the process. Must not be cancelled: that would leave an unmonitored process."""
        outcome = await spawn(self._program, task.directory, prepared.spec)
        if outcome is SpawnOutcome.BROKEN and run_state_of(task.directory) is RunState.NOT_STARTED:
            raise TaskRefused(
                Reason(
                    problem="the task's supervisor failed",
                    fix=f"see {task.directory.path}/supervisor.log",
                ),
                state=TaskState.FAILED,
            )
        return await self._report_and_monitor(task, returned=True, notes=prepared.notes)

    # --- monitoring -----------------------------------------------------------------------------

    async def _report_and_monitor(
        self, task: AgentTask, *, returned: bool, notes: str = ""
    ) -> TaskStatus:
        """Report the start or end of a task in whatever state it is, and monitor it from then on.

        Waits for the start record, without which its checks would never run.
        """
        await _wait_until_started(task.directory)
        run_state, kill = run_state_of(task.directory), task.kill
        if run_state is RunState.NOT_STARTED:
            if kill is not None:
                return await self._report_end(task, never_started_ending(kill), returned=returned)
            raise TaskRefused(
                Reason(problem="the task's supervisor exited before it started the task"),
                state=TaskState.FAILED,
            )
        if run_state is RunState.ENDED and (exit := task.directory.exit) is not None and exit.error:
            return await self._report_end(task, exit_ending(exit, kill), returned=returned)
        if task.latest is None:
            waits = task.record.readiness_check is not None
            await self._reports.report(
                task, TaskState.RUNNING, notes, ready=False if waits else None, returned=returned
            )
        if kill is not None:
            request_end(task.directory)  # an earlier agent may not have sent the request
        first = task.latest
        assert first is not None
        self._monitor(task, self._watch(task), "watch")
        self._checks.start(task)
        return first

    async def _watch(self, task: AgentTask) -> None:
        """Report the end of a task."""
        while True:
            run_state = run_state_of(task.directory)
            if run_state is RunState.ENDED and (exit := task.directory.exit) is not None:
                await self._end_checks(task)
                await self._report_end(task, exit_ending(exit, task.kill))
                return
            if run_state is RunState.SUPERVISED:
                await wait_for_supervisor_end(task.directory)
            elif run_state is RunState.ORPHANED:
                await wait_for_orphan_end(task.directory, lambda: task.kill)
                if (kill := task.kill) is not None:
                    await self._places.end_strays([task])
                    await self._report_end(task, killed_orphan_ending(kill))
                    return
            else:
                left = await self._places.end_strays([task])
                await self._report_end(task, gone_ending(task, left))
                return

    async def _end_checks(self, task: AgentTask) -> None:
        """Stop the checks of a task that has ended, and kill what they have left."""
        if not task.has_checks:
            return
        checks = task.monitors - {asyncio.current_task()}
        for check in checks:
            check.cancel()
        await asyncio.gather(*checks, return_exceptions=True)
        await self._places.end_strays([task])

    # --- killing --------------------------------------------------------------------------------

    async def kill(
        self, task_ids: tuple[str, ...], grace: timedelta | None, reason: str
    ) -> tuple[TaskStatus, ...]:
        """Kill tasks and return their last statuses, once they have ended.

        Unknown ids are forbidden to start; their status is KILLED.
        """
        seconds = None if grace is None else grace.total_seconds()
        return tuple(
            await asyncio.gather(*(self._kill(task_id, seconds, reason) for task_id in task_ids))
        )

    async def destroy(self, reservation_id: str) -> None:
        """Kill the tasks of a reservation and delete their sandboxes and its volumes."""
        self._save_destroyed(reservation_id)
        tasks = [task for task in self._tasks.values() if task.record.reservation == reservation_id]
        task_ids = tuple(task.record.task_id for task in tasks)
        await self.kill(task_ids, None, "its reservation was released")
        await self._places.end_strays(tasks)
        volumes = {*self._work_dir.reservation(reservation_id).volumes}
        volumes |= {volume for task in tasks for volume in task.record.volumes}
        for task_id in task_ids:
            await self._delete_task(task_id)
        for volume in volumes:
            await self._deleting.run(remove_tree, self._work_dir.root / volume)
        self._save_destroyed(reservation_id)  # there may be room on the disk only now

    def _save_destroyed(self, reservation_id: str) -> None:
        record = self._work_dir.reservation(reservation_id)
        try:
            if record.destroyed is None:
                self._work_dir.save_reservation(record.but(destroyed=datetime.now(UTC)))
        except OSError as problem:
            _log.error("the release of %s can't be saved: %s", reservation_id, problem)

    async def _kill(self, task_id: str, grace: float | None, reason: str) -> TaskStatus:
        task = self._known(task_id)
        if task is None:
            self._work_dir.forbidden_mark(task_id).touch(mode=0o600)
            await end_strays([Trace(self._work_dir.task(task_id).sandbox, None)])
            return _unknown_task_status(task_id, self._settings)
        if task.has_ended and task.latest is not None:
            if task.may_have_strays:
                await self._places.end_strays([task])
            return task.latest
        seconds = task.record.grace if grace is None else grace
        self._request_kill(task, KillRecord(grace=seconds, reason=reason))
        if task.preparing is not None:
            task.preparing.cancel()
        async with task.starting:  # a start that can't be cancelled any more ends soon
            if not task.monitored:
                await self._report_and_monitor(task, returned=False)
        await self._end(task)
        assert task.latest is not None
        return task.latest

    def _request_kill(self, task: AgentTask, kill: KillRecord) -> None:
        """Record that a task must be killed: the first reason stays, the shorter grace counts.

        A running task can be killed without the file, if the disk is full; its supervisor then
        uses the task's own grace period.
        """
        before = task.kill
        if before is not None:
            kill = before.but(grace=min(before.grace, kill.grace))
        task.kill_request = kill
        try:
            task.save_record()
        except OSError as problem:
            _log.error("the record of %s can't be saved: %s", task.record.task_id, problem)
        try:
            task.directory.kill = kill
        except OSError as problem:
            if not task.directory.was_started:
                raise  # only the file prevents the start
            _log.error("the kill request of %s can't be saved: %s", task.record.task_id, problem)

    def _kill_in_background(self, task: AgentTask, kill: KillRecord) -> None:
        self._request_kill(task, kill)
        self._run_in_background(self._end(task), f"end {task.record.task_id}")

    async def _end(self, task: AgentTask) -> None:
        """Ask for a task's end until it has ended."""
        while not task.ended.is_set():
            request_end(task.directory)
            try:
                async with asyncio.timeout(_KILL_RETRY_INTERVAL):
                    await task.ended.wait()
            except TimeoutError:
                continue

    async def _delete_task(self, task_id: str) -> None:
        task = self._tasks.pop(task_id, None)
        if task is None:
            return
        mark = self._work_dir.forbidden_mark(task_id)
        with suppress(OSError):  # such as a full disk, on which this makes room
            mark.touch(mode=0o600)
        await self._deleting.run(remove_tree, task.directory.path)
        mark.touch(mode=0o600)

    # --- reporting ------------------------------------------------------------------------------

    async def _report_end(
        self, task: AgentTask, end: Ending, *, returned: bool = False
    ) -> TaskStatus:
        """Report the end of a task, its last status."""
        status = await self._reports.report(
            task, end.state, end.message, exit_code=end.exit_code, returned=returned
        )
        task.ended.set()
        for monitor in task.monitors - {asyncio.current_task()}:
            monitor.cancel()
        self._remove_cgroup(task.record.task_id)
        return status

    # --- reading and tidying --------------------------------------------------------------------

    def task(self, task_id: str) -> AgentTask:
        """Return a task of this agent. Raises UnknownTask."""
        task = self._known(task_id)
        if task is None:
            raise UnknownTask(task_id)
        return task

    def running(self) -> tuple[ListedTask, ...]:
        """Return the tasks that have processes, as far as is known, by id."""
        return tuple(
            ListedTask(task_id=task_id, name=task.record.name, report_to=task.record.report_to)
            for task_id, task in sorted(self._tasks.items())
            if task.has_process
        )

    def repeat_statuses(self) -> None:
        """Send the last status of every task again."""
        for task in self._tasks.values():
            if task.latest is not None:
                self._reports.post(task, task.latest.but(told=False))

    def task_ids(self) -> tuple[str, ...]:
        """Return the ids of all tasks of this agent, running or not."""
        return tuple(self._tasks)

    def _known(self, task_id: str) -> AgentTask | None:
        """Return a task by its id, or by its directory: not every id can be restored."""
        if (task := self._tasks.get(task_id)) is not None:
            return task
        path = self._work_dir.task(task_id).path
        return next((task for task in self._tasks.values() if task.directory.path == path), None)

    async def _tidy_regularly(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_INTERVAL)
            try:
                await self.tidy(datetime.now(UTC))
            except OSError as problem:
                _log.error("old sandboxes can't be deleted: %s", problem)

    async def tidy(self, now: datetime) -> None:
        """Delete sandboxes that the settings no longer keep."""
        ended: dict[str, list[TaskStatus]] = defaultdict(list)
        for task in self._tasks.values():
            status = task.latest
            if status is not None and task.has_ended and task.delivered >= status.sequence:
                ended[status.name].append(status)
        age = self._settings.sandbox_max_age
        for statuses in ended.values():
            for task_id in expired_sandboxes(statuses, self._settings.keep_sandboxes, now - age):
                await self._delete_task(task_id)
        for mark in expired_marks(self._work_dir.forbidden_marks(), (now - age).timestamp()):
            mark.unlink(missing_ok=True)

    def _monitor(self, task: AgentTask, work: Coroutine[Any, Any, None], name: str) -> None:
        job = asyncio.create_task(work, name=name)
        task.monitors.add(job)
        job.add_done_callback(task.monitors.discard)
        job.add_done_callback(_log_failure)

    def _run_in_background(self, work: Coroutine[Any, Any, None], name: str) -> None:
        job = asyncio.create_task(work, name=name)
        self._background.add(job)
        job.add_done_callback(self._background.discard)
        job.add_done_callback(_log_failure)


async def _wait_until_started(directory: TaskDir) -> None:
    """Return when the supervisor has started the task or exited, which is soon. If the record of
    the start was deleted, it is restored after a while."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SUPERVISOR_START_TIMEOUT
    while not directory.was_started and run_state_of(directory) is RunState.SUPERVISED:
        if loop.time() < deadline:
            await asyncio.sleep(_START_POLL_INTERVAL)
        elif start_of(directory) is None:
            await asyncio.sleep(_LATE_START_POLL_INTERVAL)


def _sequence_above_all() -> int:
    """Return a sequence above that of any earlier status: the time in seconds."""
    return int(datetime.now(UTC).timestamp())


def _log_failure(job: "asyncio.Task[None]") -> None:
    if not job.cancelled() and (problem := job.exception()) is not None:
        _log.error("%s failed", job.get_name(), exc_info=problem)


def _unknown_task_status(task_id: str, settings: AgentSettings) -> TaskStatus:
    """Return the status of a task that was never here. Its sequence, the time in seconds, is above
    that of any other status."""
    now = datetime.now(UTC)
    return TaskStatus(
        task_id=task_id,
        name=instance_of(task_id),
        state=TaskState.KILLED,
        sequence=int(now.timestamp()),
        at=now,
        message="this agent never had the task, or has deleted it, and will not start it",
        agent=settings.id,
        queue=settings.queue,
        unknown=True,
    )
