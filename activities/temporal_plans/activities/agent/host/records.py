"""The agent's records of a task on disk, and the task's end as they show it.

``started.json`` and ``exit.json`` are written by the supervisor (``shim``), the rest by the agent.
"""

import signal
from collections.abc import Iterable
from datetime import datetime
from typing import Literal, NamedTuple

from temporal_plans.activities.agent.sandbox.identity import Identity
from temporal_plans.domain.services.spec import HealthCheck, ReadinessCheck
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.model import CompactValue, Value


class LineageRecord(Value):
    """``agent.json``: ``lineage`` names the work directory, and so every agent that uses it."""

    lineage: str


class LaunchRecord(CompactValue):
    """``task.json``: the order to launch a task; of secrets, only the names.

    ``paused``: the task runs the pause command in place of its own, and has no checks. ``ports``
    are those of its resource set, ``volumes`` those of its reservation. ``shell`` is the pod's;
    None: the agent's.
    """

    task_id: str
    name: str
    reservation: str
    report_to: str = ""
    grace: float = 0.0
    health_check: HealthCheck | None = None
    readiness_check: ReadinessCheck | None = None
    secret_env: tuple[str, ...] = ()
    secret_files: tuple[str, ...] = ()
    paused: bool = False
    ports: tuple[int, ...] = ()
    volumes: tuple[str, ...] = ()
    shell: str | None = None
    created: datetime


class KillRecord(Value):
    """``kill.json``: a request to kill the task, with the state that it then ends in.

    Not a ``CompactValue``: the supervisor reads the file too, and does not know the defaults.
    """

    grace: float
    state: Literal[TaskState.KILLED, TaskState.FAILED] = TaskState.KILLED
    reason: str = ""


class StartRecord(Value):
    """``started.json``. ``start`` is in clock ticks since the boot ``boot``. The task runs as
    ``identity``, or else as the supervisor's user ``uid``. ``record`` is a copy of ``task.json``,
    in case that file is damaged."""

    pid: int
    start: int
    supervisor: int
    uid: int | None = None
    identity: Identity | None = None
    boot: str
    at: datetime
    record: LaunchRecord | None = None


class ExitRecord(Value):
    """``exit.json``, by the process ``supervisor``. ``killed``: it ended after a kill request.
    ``error``: it never ran."""

    code: int | None = None
    signal: int | None = None
    killed: bool = False
    error: str = ""
    at: datetime
    supervisor: int | None = None


class ReservationRecord(CompactValue):
    """The volumes to delete when a reservation is destroyed."""

    id: str
    volumes: tuple[str, ...] = ()
    destroyed: datetime | None = None


class Ending(NamedTuple):
    """The end of a task for its last status. The exit code of a signal is 128 + its number."""

    state: TaskState
    message: str
    exit_code: int | None = None


def exit_ending(exit: ExitRecord, kill: KillRecord | None) -> Ending:
    """Return the end of a task from its exit record and the kill request before it, if any."""
    if exit.error:
        return Ending(TaskState.ERROR, exit.error)
    code = exit.code if exit.signal is None else 128 + exit.signal
    how = _exit_text(exit)
    if exit.killed:
        if kill is None:
            return Ending(TaskState.KILLED, f"ended by a signal to its supervisor, {how}", code)
        return Ending(kill.state, _message(kill.reason or "killed", how), code)
    if code == 0:
        return Ending(TaskState.FINISHED, how, code)
    return Ending(TaskState.FAILED, how, code)


def lost_ending(boot: str, started: StartRecord) -> Ending:
    """Return the end of a task that has disappeared without an exit record."""
    if started.boot != boot:
        return Ending(TaskState.LOST, "the machine was rebooted while the task ran")
    return Ending(
        TaskState.LOST,
        "the task and its supervisor have disappeared and left no exit code; were they killed?",
    )


def unreadable_ending(problems: Iterable[str]) -> Ending:
    """Return the end of a task without processes whose records can't be read."""
    return Ending(
        TaskState.LOST,
        f"no process of the task is left; how it ended is unknown: {'; '.join(problems)}",
    )


def killed_orphan_ending(kill: KillRecord) -> Ending:
    return Ending(kill.state, _message(kill.reason or "killed", "without its supervisor"))


def never_started_ending(kill: KillRecord) -> Ending:
    return Ending(kill.state, _message(kill.reason or "killed", "before it was started"))


def _exit_text(exit: ExitRecord) -> str:
    if exit.signal is None:
        return f"exit code {exit.code}"
    try:
        return f"ended by {signal.Signals(exit.signal).name}"
    except ValueError:
        return f"ended by signal {exit.signal}"


def _message(reason: str, how: str) -> str:
    return f"{reason} ({how})"
