"""What the agent writes down about a task, and what it concludes from it.

``started.json`` and ``exit.json`` are written by the supervisor (``shim``), the rest by the agent.
"""

import signal
from datetime import datetime
from typing import Literal, NamedTuple

from temporal_plans.activities.agent.identity import Identity
from temporal_plans.domain.model import CompactValue, Value
from temporal_plans.domain.service import HealthCheck, ReadinessCheck
from temporal_plans.domain.task import TaskState


class AgentRecord(Value):
    """``agent.json``: ``lineage`` names the work directory, and so every agent that uses it."""

    lineage: str


class TaskRecord(CompactValue):
    """``task.json``: what is kept of an order to launch a task; of secrets, the names.

    ``paused``: it runs the pause command in place of its own, and has no checks.
    """

    task_id: str
    name: str
    reservation: str
    report_to: str = ""
    grace: float = 0.0
    health_check: HealthCheck | None = None
    readiness_check: ReadinessCheck | None = None
    secret_env: tuple[str, ...] = ()
    paused: bool = False
    created: datetime


class KillRecord(Value):
    """``kill.json``: somebody wants the task dead, and what it is to be called then.

    No ``CompactValue``: the supervisor reads the file too, and knows no defaults.
    """

    grace: float
    state: Literal[TaskState.KILLED, TaskState.FAILED] = TaskState.KILLED
    reason: str = ""


class StartRecord(Value):
    """``started.json``. ``start`` in clock ticks since the boot that ``boot`` names. The task runs
    as ``identity``, or else as the supervisor's user, which is ``uid``."""

    pid: int
    start: int
    supervisor: int
    uid: int | None = None
    identity: Identity | None = None
    boot: str
    at: datetime


class ExitRecord(Value):
    """``exit.json``. ``killed``: it ended after somebody asked for it. ``error``: never ran."""

    code: int | None = None
    signal: int | None = None
    killed: bool = False
    error: str = ""
    at: datetime


class ReservationRecord(CompactValue):
    """What must go when a reservation does."""

    id: str
    volumes: tuple[str, ...] = ()
    destroyed: datetime | None = None


class Ending(NamedTuple):
    """How a task ended, as its last status says it. Exit codes of signals are 128 + number."""

    state: TaskState
    message: str
    exit_code: int | None = None


def ending(exit: ExitRecord, kill: KillRecord | None) -> Ending:
    """The conclusion from an exit record and the wish that preceded it, if any."""
    if exit.error:
        return Ending(TaskState.ERROR, exit.error)
    code = exit.code if exit.signal is None else 128 + exit.signal
    how = _how(exit)
    if exit.killed:
        if kill is None:
            return Ending(TaskState.KILLED, f"ended by a signal to its supervisor, {how}", code)
        return Ending(kill.state, _sentence(kill.reason or "killed", how), code)
    if code == 0:
        return Ending(TaskState.FINISHED, how, code)
    return Ending(TaskState.FAILED, how, code)


def lost(boot: str, started: StartRecord) -> Ending:
    """A task that is gone without a trace of how."""
    if started.boot != boot:
        return Ending(TaskState.LOST, "the machine was started again while the task ran")
    return Ending(
        TaskState.LOST,
        "the task and its supervisor are gone and left no exit code; were they killed?",
    )


def orphan_killed(kill: KillRecord) -> Ending:
    return Ending(kill.state, _sentence(kill.reason or "killed", "without its supervisor"))


def never_started(kill: KillRecord) -> Ending:
    return Ending(kill.state, _sentence(kill.reason or "killed", "before it was started"))


def _how(exit: ExitRecord) -> str:
    if exit.signal is None:
        return f"exit code {exit.code}"
    try:
        return f"ended by {signal.Signals(exit.signal).name}"
    except ValueError:
        return f"ended by signal {exit.signal}"


def _sentence(reason: str, how: str) -> str:
    return f"{reason} ({how})"
