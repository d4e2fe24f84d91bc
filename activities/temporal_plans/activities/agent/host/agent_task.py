"""One task, as the agent process knows it: the state in memory beside that on disk."""

import asyncio
from typing import Any

from temporal_plans.activities.agent.host.layout import TaskDir
from temporal_plans.activities.agent.host.records import (
    Ending,
    KillRecord,
    LaunchRecord,
    killed_orphan_ending,
    lost_ending,
    unreadable_ending,
)
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.supervision import RunState, run_state_of
from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.domain.tasks.statuses import TaskStatus


class AgentTask:
    """One task, as this agent process knows it."""

    def __init__(self, directory: TaskDir, record: LaunchRecord, problem: str = "") -> None:
        self.directory = directory
        self.record = record
        self.problem = problem
        """what could not be read of its launch record when it was adopted"""
        self.first_sequence = 1
        """the lowest sequence of a new status"""
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
        """Whether its supervisor may have been killed before it ended all processes, or its checks,
        which the supervisor does not know, may have left some."""
        if self.swept or not self.directory.was_started:
            return False
        return self.has_checks or self.directory.exit is None

    @property
    def has_checks(self) -> bool:
        return self.record.health_check is not None or self.record.readiness_check is not None

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


def _launched_name(task_id: str) -> str:
    """Return a task id without the part that is new with each launch."""
    return task_id.rpartition("__")[0]


def gone_ending(task: AgentTask, left: tuple[int, ...]) -> Ending:
    """Return the end of a task that has disappeared."""
    started, problems = task.directory.started, list(task.directory.unreadable.values())
    if left:
        problems.append(f"its processes {', '.join(map(str, left))} can't be killed")
    if started is None or "exit.json" in task.directory.unreadable:
        return unreadable_ending(problems or ["started.json is missing"])
    if (kill := task.kill) is not None and started.boot == shim.boot_id():
        return killed_orphan_ending(kill)
    end = lost_ending(shim.boot_id(), started)
    return end._replace(message="; ".join((end.message, *problems)))
