"""The tasks of one agent: started, watched, ended, and told of.

One ``TaskRunner`` lives as long as the agent process. The disk is the truth (``layout``), the
supervisors are the ones that run tasks (``supervision``); what is in memory here is made from them
again when an agent starts.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from temporal_plans.activities.agent import shim
from temporal_plans.activities.agent.checks import ready, run_check, unhealthy
from temporal_plans.activities.agent.files import remove_tree
from temporal_plans.activities.agent.finishing import finished
from temporal_plans.activities.agent.layout import TaskDir, WorkDir
from temporal_plans.activities.agent.outbox import Outbox
from temporal_plans.activities.agent.pods import PodSource
from temporal_plans.activities.agent.preparation import Preparation, Prepared, task_record
from temporal_plans.activities.agent.records import (
    Ending,
    KillRecord,
    TaskRecord,
    ending,
    lost,
    never_started,
    orphan_killed,
)
from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.activities.agent.secrets import redact
from temporal_plans.activities.agent.settings import AgentSettings
from temporal_plans.activities.agent.supervision import (
    Life,
    OrphanUnknown,
    ShimSpec,
    SpawnOutcome,
    ask_to_end,
    compile_supervisor,
    life_of,
    orphan_ended,
    read_spec,
    spawn,
    spec_of_orphan,
    supervisor_ended,
)
from temporal_plans.activities.agent.tidying import expired_marks, expired_sandboxes
from temporal_plans.domain.service import instance_of
from temporal_plans.domain.task import TaskState, TaskStatus
from temporal_plans.messages.cluster import LaunchInput, TaskLaunch

_log = logging.getLogger(__name__)

_STARTING_PATIENCE = 5.0
_STARTING_POLL = 0.01
_STOPPING_PATIENCE = 10.0
_ASK_AGAIN = 1.0
_TIDY_EVERY = 600.0

Progress = Callable[[str], None]


class UnknownTask(Exception):
    """This agent has no such task: it never had, or its sandbox was deleted since."""

    def __init__(self, task_id: str) -> None:
        super().__init__(
            f"this agent knows no task {task_id!r}; it ran elsewhere, or its sandbox is deleted"
        )


class AgentTask:
    """One task, as this agent process knows it."""

    def __init__(self, directory: TaskDir, record: TaskRecord) -> None:
        self.directory = directory
        self.record = record
        self.latest: TaskStatus | None = None
        self.delivered = 0
        """the sequence of the newest status that arrived"""
        self.starting = asyncio.Lock()
        """held while it is prepared and started, so that two orders of one id don't meet"""
        self.preparing: asyncio.Task[Any] | None = None
        """who prepares it; until there is a process, a kill may cancel that"""
        self.reporting = asyncio.Lock()
        self.wish: KillRecord | None = None
        """that it be dead, in case the disk could not take it"""
        self.ended = asyncio.Event()
        self.monitors: set[asyncio.Task[None]] = set()

    @property
    def over(self) -> bool:
        return self.latest is not None and self.latest.state.terminal

    @property
    def followed(self) -> bool:
        """Its end was reported, or will be."""
        return self.over or bool(self.monitors)

    @property
    def kill(self) -> KillRecord | None:
        return self.directory.kill or self.wish

    def keep_record(self) -> None:
        """Writes the record down, if what is on disk differs. OSError when that fails."""
        self.directory.create()
        if self.directory.task != self.record:
            self.directory.task = self.record


class TaskRunner:
    """Does what the agent's activities are asked for. All methods are idempotent by task id."""

    def __init__(
        self,
        settings: AgentSettings,
        work_dir: WorkDir,
        pods: PodSource,
        preparation: Preparation,
        outbox_for: Callable[[Callable[[TaskStatus], None]], Outbox],
        forget_cgroup: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._work_dir = work_dir
        self._pods = pods
        self._preparation = preparation
        self._outbox = outbox_for(self._was_delivered)
        self._forget_cgroup = forget_cgroup
        self._tasks: dict[str, AgentTask] = {}
        self._background: set[asyncio.Task[None]] = set()

    # --- the agent's own life -------------------------------------------------------------------

    def start(self) -> None:
        """Adopts what an agent before this one left on the work directory. OSError."""
        compile_supervisor(self._work_dir.supervisor)
        for directory in self._work_dir.tasks():
            record = directory.task
            if record is None:  # made, but nothing was begun; the order will come again
                remove_tree(directory.path)
                continue
            task = self._tasks[record.task_id] = AgentTask(directory, record)
            task.latest = directory.status
            self._spawn(self._adopt(task), f"adopt {record.task_id}")
        self._spawn(self._tidy_for_ever(), "tidy")

    async def stop(self) -> None:
        """Ends this process' part. Tasks go on, unless the settings say otherwise."""
        if self._settings.kill_tasks_on_exit:
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOPPING_PATIENCE):
                    await self.kill(tuple(self._tasks), timedelta(), "the agent stopped")
        running = [*self._background, *(m for task in self._tasks.values() for m in task.monitors)]
        for job in running:
            job.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._outbox.close(patience=2.0)

    async def _adopt(self, task: AgentTask) -> None:
        if task.latest is not None:
            self._post(task, task.latest.but(told=False))
        if task.over:
            task.ended.set()
            return
        if life_of(task.directory) is Life.NOT_STARTED:
            await asyncio.sleep(_STARTING_PATIENCE)  # its supervisor may be just beginning
        async with task.starting:
            waits_for_its_order = task.latest is None and task.directory.kill is None
            if life_of(task.directory) is Life.NOT_STARTED and waits_for_its_order:
                return
            if not task.followed:
                await self._follow(task, told=False)

    # --- launching ------------------------------------------------------------------------------

    async def launch(self, order: LaunchInput, progress: Progress) -> tuple[TaskStatus, ...]:
        """Starts the order's tasks; the first status of each that it didn't have before.

        What can't be started has an ERROR or FAILED status. Raises what is nobody's fault and may
        pass, such as a Service that doesn't answer.
        """
        statuses = await asyncio.gather(
            *(self._launch(order, launch, progress) for launch in order.tasks)
        )
        return tuple(status.but(told=True) for status in statuses)

    async def wait(self, task_id: str) -> TaskStatus:
        """The last status of a task, when it has ended. UnknownTask."""
        task = self._known(task_id)
        await task.ended.wait()
        assert task.latest is not None
        return task.latest

    async def _launch(
        self, order: LaunchInput, launch: TaskLaunch, progress: Progress
    ) -> TaskStatus:
        task = self._tasks.get(launch.task_id)
        if task is None:
            task = self._tasks[launch.task_id] = AgentTask(
                self._work_dir.task(launch.task_id),
                task_record(order, launch, None),
            )
        async with task.starting:
            if task.latest is not None:
                return task.latest
            try:
                if life_of(task.directory) is not Life.NOT_STARTED:
                    return await self._follow(task, told=True)
                return await self._prepare_and_start(task, order, launch, progress)
            except TaskRefused as problem:
                return await self._refuse(task, Ending(problem.state, str(problem)))
            except OSError as problem:
                if life_of(task.directory) is not Life.NOT_STARTED:
                    raise  # it runs, and the next try of this order finds it
                what = f"{problem.strerror or problem}: {problem.filename or 'the work directory'}"
                return await self._refuse(task, Ending(TaskState.ERROR, what))

    async def _prepare_and_start(
        self, task: AgentTask, order: LaunchInput, launch: TaskLaunch, progress: Progress
    ) -> TaskStatus:
        if self._work_dir.forbidden(launch.task_id).exists():
            kill = KillRecord(grace=0, reason="killed")
            return await self._settle(task, never_started(kill), told=True)
        task.preparing = asyncio.current_task()
        try:
            asked = await self._pods.pod(order)
            task.record = task_record(order, launch, asked)
            task.keep_record()
            prepared = await self._preparation.prepare(
                order, launch, asked, task.directory, progress
            )
        except asyncio.CancelledError:
            wish, me = task.kill, asyncio.current_task()
            if wish is None or me is None:
                raise
            me.uncancel()
            return await self._settle(task, never_started(wish), told=True)
        finally:
            task.preparing = None
        return await finished(self._start(task, prepared))

    async def _refuse(self, task: AgentTask, end: Ending) -> TaskStatus:
        """Reports a task that is not started, after making sure that it never will be."""
        with suppress(OSError):
            self._wish(task, KillRecord(grace=0, reason=end.message))
        return await self._settle(task, end, told=True)

    async def _start(self, task: AgentTask, prepared: Prepared) -> TaskStatus:
        """Cut off in the middle, it would leave a process that nobody watches."""
        outcome = await spawn(self._work_dir.supervisor, task.directory, prepared.spec)
        if outcome is SpawnOutcome.BROKEN and life_of(task.directory) is Life.NOT_STARTED:
            raise TaskRefused(
                f"the task's supervisor broke; see supervisor.log in {task.directory.path}",
                TaskState.FAILED,
            )
        return await self._follow(task, told=True, notes=prepared.notes)

    # --- watching -------------------------------------------------------------------------------

    async def _follow(self, task: AgentTask, *, told: bool, notes: str = "") -> TaskStatus:
        """Takes a task as it is found: reports its start or end, and watches it from then on.

        Without a start on disk its checks would never begin, so that is waited for.
        """
        while task.directory.started is None and life_of(task.directory) is Life.SUPERVISED:
            await asyncio.sleep(_STARTING_POLL)  # the supervisor has started it, or gone, soon
        life, kill = life_of(task.directory), task.kill
        if life is Life.NOT_STARTED:
            if kill is not None:
                return await self._settle(task, never_started(kill), told=told)
            raise TaskRefused(
                "the task's supervisor went away before the task was started", TaskState.FAILED
            )
        if life is Life.ENDED and (exit := task.directory.exit) is not None and exit.error:
            return await self._settle(task, ending(exit, kill), told=told)
        if task.latest is None:
            waits = task.record.readiness_check is not None
            await self._report(
                task, TaskState.RUNNING, notes, ready=False if waits else None, told=told
            )
        if kill is not None:
            ask_to_end(task.directory)  # an agent before this one may not have come to it
        first = task.latest
        assert first is not None
        self._monitor(task, self._watch(task), "watch")
        self._start_checks(task)
        return first

    async def _watch(self, task: AgentTask) -> None:
        """Reports the end of a task, whenever it comes."""
        while True:
            life = life_of(task.directory)
            started, kill = task.directory.started, task.kill
            if life is Life.ENDED and (exit := task.directory.exit) is not None:
                await self._settle(task, ending(exit, kill))
                return
            if life is Life.SUPERVISED:
                await supervisor_ended(task.directory)
            elif life is Life.ORPHANED:
                await orphan_ended(task.directory)
                if (kill := task.kill) is not None:
                    await self._settle(task, orphan_killed(kill))
                    return
            elif started is not None:
                await self._settle(task, lost(shim.boot_id(), started))
                return
            else:
                return

    def _start_checks(self, task: AgentTask) -> None:
        record, started = task.record, task.directory.started
        if started is None or task.over:
            return
        if record.health_check is None and record.readiness_check is None:
            return
        supervisor = task.directory.supervisor()
        spec = read_spec(supervisor) if supervisor else None
        if spec is None:
            if life_of(task.directory) is not Life.ORPHANED:
                return  # it has just ended
            try:
                spec = spec_of_orphan(task.directory, started, record.name)
            except OrphanUnknown as problem:
                _log.warning(
                    "%s has lost its supervisor and its checks: %s", record.task_id, problem
                )
                return
        at = started.at.timestamp()
        if record.health_check is not None:
            self._monitor(task, self._watch_health(task, record, spec, at), "health")
        if record.readiness_check is not None and not (task.latest and task.latest.ready):
            self._monitor(task, self._watch_readiness(task, record, spec, at), "readiness")

    async def _watch_health(
        self, task: AgentTask, record: TaskRecord, spec: ShimSpec, started: float
    ) -> None:
        check = record.health_check
        assert check is not None
        reason = await unhealthy(check, lambda: run_check(check.cmd, spec, check.timeout), started)
        hidden = [spec.env[key] for key in record.secret_env if key in spec.env]
        wish = KillRecord(grace=record.grace, state=TaskState.FAILED, reason=redact(reason, hidden))
        self._wish(task, wish)
        self._spawn(self._end(task), f"end {record.task_id}")

    async def _watch_readiness(
        self, task: AgentTask, record: TaskRecord, spec: ShimSpec, started: float
    ) -> None:
        check = record.readiness_check
        assert check is not None
        await ready(check, lambda: run_check(check.cmd, spec, check.timeout), started)
        await self._report(task, TaskState.RUNNING, "ready", ready=True)

    # --- ending ---------------------------------------------------------------------------------

    async def kill(
        self, task_ids: tuple[str, ...], grace: timedelta | None, reason: str
    ) -> tuple[TaskStatus, ...]:
        """Ends tasks and returns their last statuses, once they are dead.

        Ids that were never heard of are forbidden to start; their status says KILLED.
        """
        seconds = None if grace is None else grace.total_seconds()
        return tuple(
            await asyncio.gather(*(self._kill(task_id, seconds, reason) for task_id in task_ids))
        )

    async def destroy(self, reservation_id: str) -> None:
        """Ends the tasks of a reservation, deletes their sandboxes and its volumes, for good."""
        record = self._work_dir.reservation(reservation_id)
        if record.destroyed is None:
            self._work_dir.keep_reservation(record.but(destroyed=datetime.now(UTC)))
        mine = [
            task_id
            for task_id, task in self._tasks.items()
            if task.record.reservation == reservation_id
        ]
        await self.kill(tuple(mine), None, "its reservation was released")
        for task_id in mine:
            await self._forget(task_id)
        for volume in self._work_dir.reservation(reservation_id).volumes:
            await asyncio.to_thread(remove_tree, self._work_dir.root / volume)

    async def _kill(self, task_id: str, grace: float | None, reason: str) -> TaskStatus:
        task = self._tasks.get(task_id)
        if task is None:
            self._work_dir.forbidden(task_id).touch()
            return _unknown(task_id, self._settings.id)
        if task.over and task.latest is not None:
            return task.latest
        seconds = task.record.grace if grace is None else grace
        self._wish(task, KillRecord(grace=seconds, reason=reason))
        if task.preparing is not None:
            task.preparing.cancel()
        async with task.starting:  # a start that can't be stopped any more is over soon
            if not task.followed:
                await self._follow(task, told=False)
        await self._end(task)
        assert task.latest is not None
        return task.latest

    def _wish(self, task: AgentTask, kill: KillRecord) -> None:
        """Writes down that a task is to die: the first reason stays, the shorter grace counts.

        A task that runs can be ended without the file, if the disk is full; its supervisor then
        knows no grace period but the task's own.
        """
        before = task.kill
        if before is not None:
            kill = before.but(grace=min(before.grace, kill.grace))
        task.wish = kill
        try:
            task.keep_record()
            task.directory.kill = kill
        except OSError as problem:
            if task.directory.started is None:
                raise  # then only the file keeps it from starting
            _log.error("the end of %s can't be written down: %s", task.record.task_id, problem)

    async def _end(self, task: AgentTask) -> None:
        """Has a task ended as was wished; returns when it is."""
        while not task.ended.is_set():
            ask_to_end(task.directory)
            try:
                async with asyncio.timeout(_ASK_AGAIN):
                    await task.ended.wait()
            except TimeoutError:
                continue

    async def _forget(self, task_id: str) -> None:
        task = self._tasks.pop(task_id, None)
        if task is not None:
            self._work_dir.forbidden(task_id).touch()
            await asyncio.to_thread(remove_tree, task.directory.path)

    # --- telling --------------------------------------------------------------------------------

    async def _settle(self, task: AgentTask, end: Ending, *, told: bool = False) -> TaskStatus:
        """Reports how a task ended; nothing comes after it."""
        status = await self._report(
            task, end.state, end.message, exit_code=end.exit_code, told=told
        )
        task.ended.set()
        for monitor in task.monitors - {asyncio.current_task()}:
            monitor.cancel()
        self._forget_cgroup(task.record.task_id)
        return status

    async def _report(
        self,
        task: AgentTask,
        state: TaskState,
        message: str,
        *,
        ready: bool | None = None,
        exit_code: int | None = None,
        told: bool = False,
    ) -> TaskStatus:
        """Numbers a status, writes it down, and sends it."""
        record = task.record
        async with task.reporting:
            before = task.latest
            if before is not None and before.state.terminal:
                return before
            status = TaskStatus(
                task_id=record.task_id,
                name=record.name,
                state=state,
                sequence=before.sequence + 1 if before else 1,
                at=datetime.now(UTC),
                message=message,
                exit_code=exit_code,
                ready=ready,
                agent=self._settings.id,
                told=told,
            )
            await asyncio.to_thread(self._write_down, task, status)
            task.latest = status
            self._post(task, status)
            return status

    def _write_down(self, task: AgentTask, status: TaskStatus) -> None:
        try:
            task.keep_record()
            task.directory.status = status
        except OSError as problem:  # a full disk must not keep us from saying so
            _log.error("the status of %s can't be written down: %s", status.task_id, problem)

    def _post(self, task: AgentTask, status: TaskStatus) -> None:
        self._outbox.post(task.record.report_to, status)

    def _was_delivered(self, status: TaskStatus) -> None:
        task = self._tasks.get(status.task_id)
        if task is not None:
            task.delivered = max(task.delivered, status.sequence)

    # --- reading and tidying --------------------------------------------------------------------

    def task(self, task_id: str) -> AgentTask:
        """A task that is known here; UnknownTask."""
        return self._known(task_id)

    def task_ids(self) -> tuple[str, ...]:
        """All tasks that are known here, running or not."""
        return tuple(self._tasks)

    def _known(self, task_id: str) -> AgentTask:
        try:
            return self._tasks[task_id]
        except KeyError:
            raise UnknownTask(task_id) from None

    async def _tidy_for_ever(self) -> None:
        while True:
            await asyncio.sleep(_TIDY_EVERY)
            await self.tidy(datetime.now(UTC))

    async def tidy(self, now: datetime) -> None:
        """Deletes sandboxes that the settings no longer keep."""
        dead: dict[str, list[TaskStatus]] = defaultdict(list)
        for task in self._tasks.values():
            status = task.latest
            if status is not None and task.over and task.delivered >= status.sequence:
                dead[status.name].append(status)
        age = self._settings.sandbox_max_age
        for statuses in dead.values():
            for task_id in expired_sandboxes(statuses, self._settings.keep_sandboxes, now - age):
                await self._forget(task_id)
        for mark in expired_marks(self._work_dir.forbidden_marks(), (now - age).timestamp()):
            mark.unlink(missing_ok=True)

    def _monitor(self, task: AgentTask, work: Coroutine[Any, Any, None], name: str) -> None:
        job = asyncio.create_task(work, name=name)
        task.monitors.add(job)
        job.add_done_callback(task.monitors.discard)
        job.add_done_callback(_tell_of_failure)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        job = asyncio.create_task(work, name=name)
        self._background.add(job)
        job.add_done_callback(self._background.discard)
        job.add_done_callback(_tell_of_failure)


def _tell_of_failure(job: "asyncio.Task[None]") -> None:
    if not job.cancelled() and (problem := job.exception()) is not None:
        _log.error("%s failed", job.get_name(), exc_info=problem)


def _unknown(task_id: str, agent: str) -> TaskStatus:
    """For a task that was never here. Its sequence, the time, is above any that a task reaches."""
    now = datetime.now(UTC)
    return TaskStatus(
        task_id=task_id,
        name=instance_of(task_id),
        state=TaskState.KILLED,
        sequence=int(now.timestamp()),
        at=now,
        message="this agent never had the task, and will not start it",
        agent=agent,
    )
