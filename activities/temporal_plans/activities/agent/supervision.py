"""The agent's side of the task supervisors: start one, find it again, ask it to end its task."""

import asyncio
import dataclasses
import json
import os
import py_compile
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from temporal_plans.activities.agent import shim
from temporal_plans.activities.agent.identity import Identity
from temporal_plans.activities.agent.layout import TaskDir
from temporal_plans.activities.agent.records import StartRecord

_POLL = 0.02
_ORPHAN_POLL = 0.5


@dataclass(frozen=True)
class ShimSpec:
    """What a supervisor is told. Not a ``Value``: an environment may hold bytes that are no text,
    as surrogates, which JSON of the standard library carries and pydantic refuses.

    ``grace`` is the kill-grace-period in seconds; ``rlimits`` are (name, soft, hard), -1 unlimited.
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

    def to_json(self) -> bytes:
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        fields["identity"] = self.identity and self.identity.model_dump(mode="json")
        return json.dumps(fields).encode("ascii")

    @classmethod
    def from_json(cls, text: bytes) -> "ShimSpec":
        fields: dict[str, Any] = json.loads(text)
        fields["identity"] = fields["identity"] and Identity.model_validate(fields["identity"])
        fields["rlimits"] = tuple((name, soft, hard) for name, soft, hard in fields["rlimits"])
        return cls(**fields)


class SpawnOutcome(StrEnum):
    """What came of starting a supervisor; the words are the shim's. BROKEN: it said nothing."""

    STARTED = "started"
    STARTED_BEFORE = "started-before"
    FAILED = "failed"
    FORBIDDEN = "forbidden"
    BUSY = "busy"
    BROKEN = ""


def compile_supervisor(program: Path) -> None:
    """Compiles the supervisor's program into a file: it starts for every task. OSError."""
    py_compile.compile(shim.__file__, cfile=str(program), doraise=True)


async def spawn(program: Path, directory: TaskDir, spec: ShimSpec) -> SpawnOutcome:
    """Starts a supervisor; returns when the task runs, or never will. OSError when it can't be."""
    return await asyncio.to_thread(_spawn, program, directory.path, spec)


def _spawn(program: Path, directory: Path, spec: ShimSpec) -> SpawnOutcome:
    payload = os.memfd_create("task")  # in memory only; stays the supervisor's descriptor 0
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
    """What a living supervisor was told, from its memory. None when it can't be read any more."""
    try:
        return ShimSpec.from_json(Path(f"/proc/{supervisor}/fd/0").read_bytes())
    except (OSError, ValueError):
        return None


class OrphanUnknown(Exception):
    """What a task without supervisor was told can't be had any more; the text says why."""


def spec_of_orphan(directory: TaskDir, started: StartRecord, name: str) -> ShimSpec:
    """What others need to run beside the task of that name: its environment, as its process still
    has it, its sandbox and its user. Raises OrphanUnknown.

    The user is the one on record. That of the process may be another by now, with more rights.
    """
    if started.identity is None and started.uid != os.geteuid():
        raise OrphanUnknown(f"it was started by an agent of another user, {started.uid}")
    try:
        environ = Path(f"/proc/{started.pid}/environ").read_bytes()
    except OSError as problem:
        raise OrphanUnknown(f"its environment: {problem.strerror}") from problem
    entries = (os.fsdecode(entry).partition("=") for entry in environ.split(b"\0") if entry)
    env = {key: value for key, _, value in entries}
    if env.get("TASK_NAME") != name or not _runs(started):
        raise OrphanUnknown("its process has overwritten its environment")
    return ShimSpec(
        task_id="",
        cmd="",
        env=env,
        sandbox=str(directory.sandbox),
        launch_log="",
        identity=started.identity,
    )


class Life(StrEnum):
    """What the disk and the kernel say of a task.

    ORPHANED: runs without its supervisor, so its exit code will be unknown. GONE: left no trace.
    """

    NOT_STARTED = "not started"
    SUPERVISED = "supervised"
    ORPHANED = "orphaned"
    ENDED = "ended"
    GONE = "gone"


def life_of(directory: TaskDir) -> Life:
    """The truth about a task, whoever started it."""
    if directory.exit is not None:
        return Life.ENDED
    if directory.supervisor() is not None:
        return Life.SUPERVISED
    if directory.exit is not None:  # written, and the lock let go of, between the two looks
        return Life.ENDED
    started = directory.started
    if started is None:
        return Life.NOT_STARTED
    return Life.ORPHANED if _runs(started) else Life.GONE


def _runs(started: StartRecord) -> bool:
    """Whether that very process lives, and not a later one of the same number."""
    stat = shim.process_stat(started.pid)
    return (
        stat is not None
        and started.boot == shim.boot_id()
        and stat.start == started.start
        and stat.state not in "ZX"
    )


def _number_is_ours(started: StartRecord) -> bool:
    """The kernel gives a process's number to no other while its session has members."""
    stat = shim.process_stat(started.pid)
    return stat is None or stat.start == started.start


async def supervisor_ended(directory: TaskDir) -> None:
    """Returns when the task has no living supervisor (any more)."""
    while True:
        pidfd = await _pidfd(directory)
        if pidfd is None:
            return
        try:
            await _readable(pidfd)
        finally:
            os.close(pidfd)


def ask_to_end(directory: TaskDir) -> bool:
    """Asks the supervisor to end its task as ``kill.json`` says; whether there is one to ask."""
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


async def orphan_ended(directory: TaskDir) -> None:
    """Returns when nothing is left of a task without supervisor; ends it when it is to be killed.

    Like its supervisor would, it ends what the task's first process leaves behind.
    """
    started = directory.started
    deadline: float | None = None
    while started is not None and _runs(started):
        kill = directory.kill
        if kill is not None:
            now = asyncio.get_running_loop().time()
            if deadline is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(started.pid, signal.SIGTERM)
            deadline = min(deadline or now + kill.grace, now + kill.grace)
            if now >= deadline:
                shim.kill_family(started.pid, started.pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(started.pid, signal.SIGKILL)
        await asyncio.sleep(_ORPHAN_POLL if kill is None else _POLL)
    if started is not None:
        await _stragglers_ended(started)


async def _stragglers_ended(started: StartRecord) -> None:
    """Ends what is left of a task's session: a process that was killed goes on for a moment, with
    its ports, and one in the middle of disk I/O for longer."""
    deadline = asyncio.get_running_loop().time() + shim.STRAGGLER_PATIENCE
    while _number_is_ours(started) and shim.kill_family(started.pid, started.pid):
        if asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(_POLL)


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
        await asyncio.sleep(_POLL)


async def _readable(descriptor: int) -> None:
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
