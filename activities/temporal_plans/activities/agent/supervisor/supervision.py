"""The agent's side of the task supervisors: start them, find them, request a task's end."""

import asyncio
import dataclasses
import json
import logging
import marshal
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from importlib.util import MAGIC_NUMBER, source_hash
from pathlib import Path
from typing import Any

from temporal_plans.activities.agent.host.layout import TaskDir
from temporal_plans.activities.agent.host.records import KillRecord, LaunchRecord, StartRecord
from temporal_plans.activities.agent.sandbox.files import write_atomic
from temporal_plans.activities.agent.sandbox.identity import Identity, identity_of
from temporal_plans.activities.agent.sandbox.marks import marked
from temporal_plans.activities.agent.sandbox.redaction import values_in_files
from temporal_plans.activities.agent.sandbox.shell import SH
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.environ import environ_of
from temporal_plans.activities.agent.supervisor.signs import user_of
from temporal_plans.activities.agent.supervisor.strays import (
    Trace,
    end_strays,
    first_child,
    first_process,
)

_log = logging.getLogger(__name__)

_POLL_INTERVAL = 0.02  # seconds
_ORPHAN_POLL_INTERVAL = 0.5  # seconds


@dataclass(frozen=True)
class ShimSpec:
    """The specification for a supervisor. Not a ``Value``: an environment may contain bytes that
    are not UTF-8, as surrogates, which the standard library's JSON accepts and pydantic refuses.

    ``grace`` is the kill-grace-period in seconds; ``rlimits`` are (name, soft, hard), -1 unlimited;
    ``record`` is a copy of ``task.json``, in case that file is damaged;
    ``hidden`` are the values of the task's secrets, which no message may contain.
    """

    task_id: str
    cmd: str
    env: dict[str, str]
    sandbox: str
    launch_log: str
    grace: float = 0.0
    identity: Identity | None = None
    rlimits: tuple[tuple[str, int, int], ...] = ()
    cgroup: str | None = None
    hidden: tuple[str, ...] = ()
    record: LaunchRecord | None = None
    shell: str = SH

    def to_json(self) -> bytes:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["identity"] = self.identity and self.identity.model_dump(mode="json")
        fields["record"] = self.record and self.record.model_dump(mode="json")
        return json.dumps(fields).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> "ShimSpec":
        fields: dict[str, Any] = json.loads(text)
        fields["identity"] = fields["identity"] and Identity.model_validate(fields["identity"])
        fields["hidden"] = tuple(fields.get("hidden", ()))
        record = fields.get("record")  # absent with a supervisor of an earlier version
        fields["record"] = record and LaunchRecord.model_validate(record)
        fields["rlimits"] = tuple((name, soft, hard) for name, soft, hard in fields["rlimits"])
        return cls(**fields)


class SpawnOutcome(StrEnum):
    """The outcome of a supervisor's start, as the shim prints it. BROKEN: it printed nothing."""

    STARTED = "started"
    STARTED_BEFORE = "started-before"
    FAILED = "failed"
    FORBIDDEN = "forbidden"
    BUSY = "busy"
    BROKEN = ""


def compile_supervisor(program: Path) -> None:
    """Compile the supervisor's program into a file, for it starts once per task, unless the file
    has that program already. Raises OSError."""
    source = Path(shim.__file__).read_bytes()
    unchecked = (1).to_bytes(4, "little")  # a flag: identified by its hash, not compared when run
    header = MAGIC_NUMBER + unchecked + source_hash(source)
    if not _has_program(program, header):
        code = compile(source, shim.__file__, "exec", dont_inherit=True)
        write_atomic(program, header + marshal.dumps(code), mode=0o644)


def _has_program(file: Path, header: bytes) -> bool:
    try:
        compiled = file.read_bytes()
        marshal.loads(compiled[len(header) :])
    except (OSError, ValueError, EOFError, TypeError):
        return False  # missing or damaged
    return compiled.startswith(header)


async def spawn(program: Path, directory: TaskDir, spec: ShimSpec) -> SpawnOutcome:
    """Start a supervisor; return when the task runs or never will. Raises OSError."""
    return await asyncio.to_thread(_spawn, program, directory.path, spec)


def _spawn(program: Path, directory: Path, spec: ShimSpec) -> SpawnOutcome:
    payload = os.memfd_create("task")  # in memory only; remains the supervisor's descriptor 0
    try:
        with open(payload, "wb", closefd=False) as file:
            file.write(spec.to_json())
        os.lseek(payload, 0, os.SEEK_SET)
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(program), str(directory)],
            stdin=payload,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            check=False,
        )
    finally:
        os.close(payload)
    try:
        return SpawnOutcome(json.loads(done.stdout)["outcome"])
    except ValueError:
        return SpawnOutcome.BROKEN


def read_spec(supervisor: int) -> ShimSpec | None:
    """Return the specification of a running supervisor, from its memory; None if not readable."""
    try:
        return ShimSpec.from_json(Path(f"/proc/{supervisor}/fd/0").read_bytes())
    except (OSError, ValueError):
        return None


class OrphanSpecUnavailable(Exception):
    """The specification of a task without supervisor can't be restored; the text says why."""


def spec_of_orphan(
    directory: TaskDir, started: StartRecord, record: LaunchRecord, shell: str = SH
) -> ShimSpec:
    """Return a specification for checks of a task: the environment of its process, its sandbox and
    its user. Raises OrphanSpecUnavailable.

    The user is the recorded one. The process may have changed to another since, with more rights.
    """
    if started.identity is None and started.uid != os.geteuid():
        raise OrphanSpecUnavailable(f"an agent of another user started it (uid {started.uid})")
    try:
        environ = environ_of(started.pid)
    except OSError as problem:
        raise OrphanSpecUnavailable(
            f"its environment can't be read: {problem.strerror}"
        ) from problem
    entries = (os.fsdecode(entry).partition("=") for entry in environ.split(b"\0") if entry)
    env = {key: value for key, _, value in entries}
    if env.get("TASK_NAME") != record.name or not _is_running(started):
        raise OrphanSpecUnavailable("its process has overwritten its environment")
    return ShimSpec(
        task_id="",
        cmd="",
        env=env,
        sandbox=str(directory.sandbox),
        launch_log="",
        identity=started.identity,
        shell=shell,
        hidden=_secrets_of_orphan(directory, record, env),
    )


def _secrets_of_orphan(
    directory: TaskDir, record: LaunchRecord, env: dict[str, str]
) -> tuple[str, ...]:
    files = values_in_files(directory.sandbox, record.secret_files)
    return (
        *(env[key] for key in record.secret_env if key in env),
        *(os.fsdecode(value) for value in files),
    )


class RunState(StrEnum):
    """The state of a task by the disk and the kernel.

    ORPHANED: runs without its supervisor, so its exit code will be unknown. GONE: started, and
    disappeared without an exit record.
    """

    NOT_STARTED = "not started"
    SUPERVISED = "supervised"
    ORPHANED = "orphaned"
    ENDED = "ended"
    GONE = "gone"


def run_state_of(directory: TaskDir) -> RunState:
    """Return the state of a task, whichever agent started it.

    A task whose start can't be read was started all the same: it is ORPHANED if a process of it is
    found, else GONE.
    """
    if directory.exit is not None:
        return RunState.ENDED
    if directory.supervisor() is not None:
        return RunState.SUPERVISED
    if directory.exit is not None:  # written, and the lock released, between the two checks
        return RunState.ENDED
    if not directory.was_started:
        return RunState.NOT_STARTED
    started = start_of(directory)
    return RunState.ORPHANED if started is not None and _is_running(started) else RunState.GONE


def start_of(directory: TaskDir) -> StartRecord | None:
    """Return the start of a task that was started. If its record can't be read, it is restored from
    the task's process; None if there is none."""
    if (started := directory.started) is not None:
        return started
    supervisor = directory.supervisor()
    process = first_child(supervisor) if supervisor else first_process(directory.sandbox)
    if process is None:
        return None
    restored = _restored_start(process, supervisor or 0, directory.sandbox)
    try:
        directory.started = restored
    except OSError as problem:  # kept in memory
        _log.error("the start of %s can't be saved: %s", directory.path.name, problem)
    _log.warning("%s: restored the start from process %d", directory.path, process.pid)
    return restored


def _restored_start(process: shim.ProcessStat, supervisor: int, sandbox: Path) -> StartRecord:
    spec = read_spec(supervisor) if supervisor else None
    uid = user_of(process.pid)
    return StartRecord(
        pid=process.pid,
        start=process.start,
        supervisor=supervisor,
        uid=os.geteuid(),
        identity=spec.identity if spec else _identity_of_user(uid, sandbox),
        boot=shim.boot_id(),
        at=datetime.now(UTC) - timedelta(seconds=_since(process.start)),
        record=spec.record if spec else None,
    )


def age_of(started: StartRecord) -> float:
    """Return the seconds since a start on this boot, whatever became of the wall clock since."""
    return _since(started.start)


def _since(ticks: int) -> float:
    """``ticks`` is a time since the boot, as /proc has the starts of processes."""
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"))


def _identity_of_user(uid: int | None, sandbox: Path) -> Identity | None:
    if uid is None or uid == os.geteuid():
        return None
    try:
        return marked(identity_of(pwd.getpwuid(uid)), sandbox)
    except KeyError:
        return None


def trace_of(directory: TaskDir) -> Trace:
    """Return what identifies the processes of a task."""
    return Trace(directory.sandbox, directory.started)


def _is_running(started: StartRecord) -> bool:
    """Whether that process runs, and not a later one with the same id."""
    stat = shim.process_stat(started.pid)
    return (
        stat is not None
        and started.boot == shim.boot_id()
        and stat.start == started.start
        and stat.state not in "ZX"
    )


async def wait_for_supervisor_end(directory: TaskDir) -> None:
    """Return when the task has no running supervisor (any more)."""
    while True:
        pidfd = await _pidfd(directory)
        if pidfd is None:
            return
        try:
            await _wait_readable(pidfd)
        finally:
            os.close(pidfd)


def request_end(directory: TaskDir) -> bool:
    """Ask the supervisor to end its task by ``kill.json``; return whether there is a supervisor."""
    pid = directory.supervisor()
    if not pid:
        return False
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        if directory.supervisor() != pid:
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
    finally:
        os.close(pidfd)
    return True


async def wait_for_orphan_end(
    directory: TaskDir, requested: Callable[[], KillRecord | None]
) -> tuple[int, ...]:
    """Return when the first process of a task without supervisor has ended, and all that it leaves;
    kill it when its kill is ``requested``. Returns the processes that can't be killed.

    Like its supervisor would, it kills the descendants that the task's first process leaves.
    """
    started = start_of(directory)
    deadline: float | None = None
    while started is not None and _is_running(started):
        kill = requested()
        if kill is not None:
            now = asyncio.get_running_loop().time()
            if deadline is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(started.pid, signal.SIGTERM)
            deadline = min(deadline or now + kill.grace, now + kill.grace)
            if now >= deadline:
                await end_strays([trace_of(directory)])
        await asyncio.sleep(_ORPHAN_POLL_INTERVAL if kill is None else _POLL_INTERVAL)
    return await end_strays([trace_of(directory)])


async def _pidfd(directory: TaskDir) -> int | None:
    while True:
        pid = directory.supervisor()
        if pid is None:
            return None
        if pid:
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                return None
            if directory.supervisor() == pid:
                return pidfd
            os.close(pidfd)
        await asyncio.sleep(_POLL_INTERVAL)


async def _wait_readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(descriptor, wake)
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
