"""The tasks of one agent: starts, monitors, kills and reports them.

One ``TaskRunner`` lives as long as the agent process. The disk is the source of truth (``layout``)
and supervisors run the tasks (``supervision``); the state in memory is rebuilt from them when an
agent starts.
"""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from temporal_plans.activities.agent.host.adoption import found_task
from temporal_plans.activities.agent.host.finishing import finish_despite_cancellation
from temporal_plans.activities.agent.host.layout import TaskDir, WorkDir
from temporal_plans.activities.agent.host.listening import listening_ports
from temporal_plans.activities.agent.host.pods import PodSource
from temporal_plans.activities.agent.host.preparation import (
    Preparation,
    PreparedLaunch,
    task_record,
)
from temporal_plans.activities.agent.host.records import (
    Ending,
    KillRecord,
    LaunchRecord,
    exit_ending,
    killed_orphan_ending,
    lost_ending,
    never_started_ending,
    unreadable_ending,
)
from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.host.settings import AgentSettings
from temporal_plans.activities.agent.host.status_outbox import StatusOutbox
from temporal_plans.activities.agent.host.threads import Threads
from temporal_plans.activities.agent.host.tidying import expired_marks, expired_sandboxes
from temporal_plans.activities.agent.sandbox.checks import (
    run_check,
    wait_until_ready,
    wait_until_unhealthy,
)
from temporal_plans.activities.agent.sandbox.redaction import Redactor
from temporal_plans.activities.agent.sandbox.removal import remove_tree
from temporal_plans.activities.agent.sandbox.shell import SH, usable_shell
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.strays import Trace, end_strays
from temporal_plans.activities.agent.supervisor.supervision import (
    OrphanSpecUnavailable,
    RunState,
    ShimSpec,
    SpawnOutcome,
    compile_supervisor,
    read_spec,
    request_end,
    run_state_of,
    spawn,
    spec_of_orphan,
    start_of,
    trace_of,
    wait_for_orphan_end,
    wait_for_supervisor_end,
)
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
_PLACE_TIMEOUT = 20.0
_PORT_TIMEOUT = 3.0
_PORT_POLL_INTERVAL = 0.1
_PORT_REPORT_TIMEOUT = 5.0

_DELETING_THREADS = 2

Progress = Callable[[str], None]


class UnknownTask(Exception):
    """This agent has no such task: it never ran here, or its sandbox was deleted."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"this agent has no task {task_id!r}; it ran elsewhere, or its sandbox was deleted"
        )


class AgentTask:
    """One task, as this agent process knows it."""

    def __init__(self, directory: TaskDir, record: LaunchRecord, problem: str = "") -> None:
        self.directory = directory
        self.record = record
        self.problem = problem
        """what could not be read of its launch record when it was adopted"""
        self.first_sequence = 1
        self.adopting = False
        """an earlier agent left it, and this agent has yet to find out in what state"""
        self.holds_place = False
        """it is being started, so that no other launch of this task may be"""
        self.swept = False
        """no process of it is left, whatever became of its supervisor"""
        self.latest: TaskStatus | None = None
        self.delivered = 0
        """the sequence of the newest delivered status"""
        self.starting = asyncio.Lock()
        """held during preparation and start, so that two orders of one id run in turn"""
        self.preparing: asyncio.Task[Any] | None = None
        """the job that prepares it; a kill cancels it until the process exists"""
        self.reporting = asyncio.Lock()
        self.kill_request: KillRecord | None = None
        """the kill request, in case it could not be written to disk"""
        self.ended = asyncio.Event()
        self.monitors: set[asyncio.Task[None]] = set()
        self.redactor = Redactor()
        """removes the values of its secrets from messages, once they are known"""

    @property
    def has_ended(self) -> bool:
        return self.latest is not None and self.latest.state.terminal

    @property
    def monitored(self) -> bool:
        """Whether its end was reported, or a monitor will report it."""
        return self.has_ended or bool(self.monitors)

    @property
    def kill(self) -> KillRecord | None:
        kill = self.directory.kill or self.kill_request
        if kill is None and (problem := self.directory.unreadable.get("kill.json")):
            return KillRecord(grace=self.record.grace, reason=f"killed; {problem}")
        return kill

    @property
    def may_run(self) -> bool:
        """Whether a process of it may run, or be started."""
        if self.has_ended:
            return False
        if self.holds_place or self.adopting:
            return True
        return run_state_of(self.directory) is not RunState.NOT_STARTED

    @property
    def has_process(self) -> bool:
        """Whether its process runs, as far as is known."""
        if self.has_ended:
            return False
        states = (RunState.SUPERVISED, RunState.ORPHANED)
        return self.adopting or run_state_of(self.directory) in states

    @property
    def is_ending(self) -> bool:
        """Whether it ends soon, or has ended and this was not reported yet."""
        if self.adopting or self.kill is not None:
            return True
        return run_state_of(self.directory) in (RunState.ENDED, RunState.GONE)

    @property
    def may_have_strays(self) -> bool:
        """Whether its supervisor may have been killed before it ended all processes."""
        return not self.swept and self.directory.was_started and self.directory.exit is None

    def is_launch_of(self, other: "AgentTask") -> bool:
        """Whether both are launches of one task in one place. The place is unknown when the record
        was not readable; then the service counts, which is in the task id."""
        if self is other or self.record.name != other.record.name:
            return False
        if self.record.reservation and other.record.reservation:
            return self.record.reservation == other.record.reservation
        return _launched_name(self.record.task_id) == _launched_name(other.record.task_id)

    def save_record(self) -> None:
        """Write the record if the one on disk differs. Raises OSError."""
        self.directory.create()
        if self.directory.task != self.record:
            self.directory.task = self.record


class TaskRunner:
    """Implements the agent's activities. All methods are idempotent by task id."""

    def __init__(
        self,
        settings: AgentSettings,
        work_dir: WorkDir,
        pods: PodSource,
        preparation: Preparation,
        outbox_for: Callable[[Callable[[TaskStatus], None]], StatusOutbox],
        remove_cgroup: Callable[[str], None],
        kill_cgroup: Callable[[str], None] = lambda task_id: None,
    ) -> None:
        self._settings = settings
        self._work_dir = work_dir
        self._pods = pods
        self._preparation = preparation
        self._outbox = outbox_for(self._mark_delivered)
        self._remove_cgroup = remove_cgroup
        self._kill_cgroup = kill_cgroup
        self._program = work_dir.supervisor
        self.report_ports: Callable[[], Awaitable[None]] = _report_nothing
        """reports ``ports_in_use`` to the pool; set by who registers the agent"""
        self._tasks: dict[str, AgentTask] = {}
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
        await self._outbox.close(timeout=2.0)

    async def _adopt(self, task: AgentTask) -> None:
        try:
            await self._resume(task)
        finally:
            task.adopting = False

    async def _resume(self, task: AgentTask) -> None:
        if task.latest is not None:
            self._post(task, task.latest.but(told=False))
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
            await self._report(task, TaskState.RUNNING, text, ready=task.latest.ready)

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
                await self._take_place(task)
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

    async def _take_place(self, task: AgentTask) -> None:
        """Make sure that no other launch of this task runs, and that none starts. Raises
        TaskRefused.

        The task's service kills a launch before it orders the next, unless it was misled about its
        end. A report that the other launch runs makes the service kill it.
        """
        others = [other for other in self._tasks.values() if task.is_launch_of(other)]
        deadline = asyncio.get_running_loop().time() + _PLACE_TIMEOUT
        while running := [other for other in others if other.may_run]:
            late = asyncio.get_running_loop().time() > deadline
            for other in running:
                if other.holds_place or late or not other.is_ending:
                    if other.latest is not None:
                        self._post(other, other.latest.but(told=False))
                    raise TaskRefused(
                        Reason(
                            problem=f"{other.record.name} runs already, launched as "
                            f"{other.record.task_id}",
                            fix="a task is never launched beside itself: that launch must end "
                            "first",
                        ),
                        state=TaskState.FAILED,
                    )
            await asyncio.sleep(_START_POLL_INTERVAL)
        task.holds_place = True
        await self._sweep(others)

    async def _sweep(self, tasks: Iterable[AgentTask]) -> None:
        """Kill what is left of tasks that ended without their supervisor. Raises TaskRefused."""
        tasks = [task for task in tasks if task.has_ended and task.may_have_strays]
        if not tasks:
            return
        if left := await self._end_strays(tasks):
            raise TaskRefused(
                Reason(problem=f"processes of an earlier launch can't be killed: {_numbers(left)}"),
                state=TaskState.FAILED,
            )

    async def _end_strays(self, tasks: Sequence[AgentTask]) -> tuple[int, ...]:
        for task in tasks:
            self._kill_cgroup(task.record.task_id)
        left = await end_strays([trace_of(task.directory) for task in tasks])
        for task in tasks:
            task.swept = not left
        return left

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
                await self._wait_for_ports(task)
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

    async def _wait_for_ports(self, task: AgentTask) -> None:
        """Wait until no other process listens on the task's ports. Raises TaskRefused.

        A process that was just killed keeps its ports for a moment. Other tasks of the pod may
        share ports with this one.
        """
        if not task.record.ports:
            return
        deadline = asyncio.get_running_loop().time() + _PORT_TIMEOUT
        while taken := await self._taken_ports(task):
            if asyncio.get_running_loop().time() > deadline:
                await self._report_ports()
                raise TaskRefused(
                    Reason(
                        field="ports",
                        problem="another process of this machine listens on "
                        f"{_numbers(taken)}, which the pool had reserved for this task",
                    ),
                    state=TaskState.FAILED,
                )
            await asyncio.sleep(_PORT_POLL_INTERVAL)

    async def _taken_ports(self, task: AgentTask) -> list[int]:
        listening = await asyncio.to_thread(listening_ports)
        shared = {
            port
            for other in self._tasks.values()
            if other is not task
            and other.record.reservation == task.record.reservation
            and other.has_process
            for port in other.record.ports
        }
        return sorted((listening & set(task.record.ports)) - shared)

    def ports_in_use(self) -> frozenset[int]:
        """Return the ports on which processes listen, except those that were reserved for them."""
        own = {
            port for task in self._tasks.values() if task.has_process for port in task.record.ports
        }
        return listening_ports() - own

    async def _report_ports(self) -> None:
        """Report the ports in use to the pool, which then reserves other ones."""
        try:
            async with asyncio.timeout(_PORT_REPORT_TIMEOUT):
                await self.report_ports()
        except TimeoutError:
            _log.warning("the pool was not notified of ports in use: it does not answer")

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
            await self._report(
                task, TaskState.RUNNING, notes, ready=False if waits else None, returned=returned
            )
        if kill is not None:
            request_end(task.directory)  # an earlier agent may not have sent the request
        first = task.latest
        assert first is not None
        self._monitor(task, self._watch(task), "watch")
        self._start_checks(task)
        return first

    async def _watch(self, task: AgentTask) -> None:
        """Report the end of a task."""
        while True:
            run_state = run_state_of(task.directory)
            if run_state is RunState.ENDED and (exit := task.directory.exit) is not None:
                await self._report_end(task, exit_ending(exit, task.kill))
                return
            if run_state is RunState.SUPERVISED:
                await wait_for_supervisor_end(task.directory)
            elif run_state is RunState.ORPHANED:
                await wait_for_orphan_end(task.directory, lambda: task.kill)
                if (kill := task.kill) is not None:
                    await self._end_strays([task])
                    await self._report_end(task, killed_orphan_ending(kill))
                    return
            else:
                left = await self._end_strays([task])
                await self._report_end(task, _gone_ending(task, left))
                return

    def _start_checks(self, task: AgentTask) -> None:
        record = task.record
        if task.has_ended or (record.health_check is None and record.readiness_check is None):
            return
        if (started := start_of(task.directory)) is None:
            return
        supervisor = task.directory.supervisor()
        spec = read_spec(supervisor) if supervisor else None
        if spec is None:
            if run_state_of(task.directory) is not RunState.ORPHANED:
                return  # it has just ended
            try:
                shell = usable_shell(record.shell, self._settings.shell) or SH
                spec = spec_of_orphan(task.directory, started, record, shell)
            except OrphanSpecUnavailable as problem:
                _log.warning(
                    "%s has lost its supervisor and its checks: %s", record.task_id, problem
                )
                return
        task.redactor = Redactor(map(os.fsencode, spec.hidden))
        at = started.at.timestamp()
        if record.health_check is not None:
            self._monitor(task, self._watch_health(task, record, spec, at), "health")
        if record.readiness_check is not None and not (task.latest and task.latest.ready):
            self._monitor(task, self._watch_readiness(task, record, spec, at), "readiness")

    async def _watch_health(
        self, task: AgentTask, record: LaunchRecord, spec: ShimSpec, started: float
    ) -> None:
        check = record.health_check
        assert check is not None
        reason = await wait_until_unhealthy(
            check, lambda: run_check(check.cmd, spec, check.timeout), started
        )
        kill = KillRecord(grace=record.grace, state=TaskState.FAILED, reason=reason)
        self._request_kill(task, kill)
        self._run_in_background(self._end(task), f"end {record.task_id}")

    async def _watch_readiness(
        self, task: AgentTask, record: LaunchRecord, spec: ShimSpec, started: float
    ) -> None:
        check = record.readiness_check
        assert check is not None

        async def report(problem: str) -> None:
            await self._report(task, TaskState.RUNNING, problem, ready=False)

        await wait_until_ready(
            check, lambda: run_check(check.cmd, spec, check.timeout), started, report
        )
        await self._report(task, TaskState.RUNNING, "ready", ready=True)

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
        await self._end_strays(tasks)
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
                await self._end_strays([task])
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
        status = await self._report(
            task, end.state, end.message, exit_code=end.exit_code, returned=returned
        )
        task.ended.set()
        for monitor in task.monitors - {asyncio.current_task()}:
            monitor.cancel()
        self._remove_cgroup(task.record.task_id)
        return status

    async def _report(
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
                sequence=before.sequence + 1 if before else task.first_sequence,
                at=datetime.now(UTC),
                message=task.redactor.text(message),
                exit_code=exit_code,
                ready=ready,
                agent=self._settings.id,
                queue=self._settings.queue,
                told=returned,
            )
            await asyncio.to_thread(self._save_status, task, status)
            task.latest = status
            self._post(task, status)
            return status

    def _save_status(self, task: AgentTask, status: TaskStatus) -> None:
        try:
            task.save_record()
            task.directory.status = status
        except OSError as problem:  # report the status even if the disk is full
            _log.error("the status of %s can't be saved: %s", status.task_id, problem)

    def _post(self, task: AgentTask, status: TaskStatus) -> None:
        self._outbox.post(task.record.report_to, status)

    def _mark_delivered(self, status: TaskStatus) -> None:
        task = self._tasks.get(status.task_id)
        if task is not None:
            task.delivered = max(task.delivered, status.sequence)

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
                self._post(task, task.latest.but(told=False))

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


async def _report_nothing() -> None:
    """Report no ports: the agent is not registered."""


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


def _gone_ending(task: AgentTask, left: tuple[int, ...]) -> Ending:
    """Return the end of a task that has disappeared."""
    started, problems = task.directory.started, list(task.directory.unreadable.values())
    if left:
        problems.append(f"its processes {_numbers(left)} can't be killed")
    if started is None or "exit.json" in task.directory.unreadable:
        return unreadable_ending(problems or ["started.json is missing"])
    if (kill := task.kill) is not None and started.boot == shim.boot_id():
        return killed_orphan_ending(kill)
    end = lost_ending(shim.boot_id(), started)
    return end._replace(message="; ".join((end.message, *problems)))


def _launched_name(task_id: str) -> str:
    """Return a task id without the part that is new with each launch."""
    return task_id.rpartition("__")[0]


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


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
