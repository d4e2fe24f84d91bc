"""The supervisor of one task: a small process of its own that outlives the agent.

Run as ``python -I -S shim.py <task directory>`` with a ``ShimSpec`` as JSON on standard input. That
must be a memfd: the supervisor keeps it as descriptor 0 until it exits, so that a restarted agent
can read the task's environment there and no secret is ever on disk.

It imports the standard library only and starts in tens of milliseconds. It forks; the child becomes
the supervisor in its own session, the parent prints the outcome (one JSON object) and exits.

Why a task starts at most once, whichever process is killed at whatever time:

1. The supervisor holds ``flock`` on ``lock`` as long as it lives; without the lock it exits.
2. With the lock it checks for ``kill.json`` (never start) and ``started.json`` (started before).
3. The task's process is forked, but waits on a pipe until ``started.json`` is on disk. If the
   supervisor dies before, the pipe closes and the process exits without running the command.

SIGTERM asks the supervisor to end the task: SIGTERM to the task's process group, then after the
grace period SIGKILL to all its descendants. So a kill continues when the agent dies.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would be an eighth of the start-up
    from typing import Any, NoReturn

LOCK_TIMEOUT = 2.0
"""Seconds to wait for the lock: agents hold it for a moment to check for a supervisor."""

STRAGGLER_TIMEOUT = 10.0
"""Seconds until the end of the task is reported although a killed descendant still exists."""

EXIT_SIZE_LIMIT = 1024
"""Bytes that are reserved for ``exit.json``."""

_SIGNALS = {signal.SIGCHLD, signal.SIGTERM}
_PR_SET_CHILD_SUBREAPER = 36


class ProcessStat:
    """Fields of ``/proc/<pid>/stat``. ``start`` is in clock ticks since the machine's boot."""

    def __init__(self, pid: int, state: str, parent: int, session: int, start: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.session = session
        self.start = start


def process_stat(pid: int) -> ProcessStat | None:
    """Return the process with that id, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the command's name may hold anything
    return ProcessStat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def process_family(root: int, session: int | None = None) -> set[int]:
    """Return the running descendants of ``root`` and members of ``session``, without ``root``."""
    stats = [
        stat for name in os.listdir("/proc") if name.isdigit() and (stat := process_stat(int(name)))
    ]
    children: dict[int, list[int]] = {}
    for stat in stats:
        children.setdefault(stat.parent, []).append(stat.pid)
    found: set[int] = {stat.pid for stat in stats if stat.session == session}
    waiting = [root, *found]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            if pid not in found:
                found.add(pid)
                waiting.append(pid)
    alive = {stat.pid for stat in stats if stat.state not in "ZX"}
    return (found & alive) - {root}


def kill_family(root: int, session: int) -> int:
    """Send SIGKILL to all of ``process_family`` and return their number."""
    family = process_family(root, session)
    for pid in family:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(family)


def boot_id() -> str:
    """Return the id of this boot of the machine; process ids of other boots are meaningless."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def write_json(path: str, value: "dict[str, Any]") -> None:
    """Write a file atomically, also with respect to a loss of power."""
    temporary = f"{path}.{os.getpid()}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(temporary, flags, 0o600), "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def reserve_exit(path: str) -> None:
    """Reserve room for ``exit.json``: the disk may be full when the task ends."""
    with contextlib.suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(f"{path}.room", flags, 0o600), "wb") as file:
            file.write(b" " * EXIT_SIZE_LIMIT)


def write_exit(path: str, value: "dict[str, Any]") -> None:
    """Write ``exit.json``, on a full disk in the place that was reserved for it. Raises OSError."""
    room = f"{path}.room"
    try:
        write_json(path, value)
    except OSError:
        text = json.dumps(value)
        if len(text) > EXIT_SIZE_LIMIT:
            text = json.dumps({**value, "error": str(value["error"])[: EXIT_SIZE_LIMIT // 8]})
        with open(os.open(room, os.O_WRONLY | os.O_NOFOLLOW), "wb") as file:
            file.write(text.encode().ljust(EXIT_SIZE_LIMIT))
            file.flush()
            os.fsync(file.fileno())
        os.replace(room, path)
    else:
        with contextlib.suppress(OSError):
            os.unlink(room)


class TaskFailedToStart(Exception):
    """The task's process could not be created as specified; the text says what to change."""


class Supervisor:
    """Starts one process, waits for its end, kills its descendants, and records the end."""

    def __init__(self, directory: str, spec: "dict[str, Any]") -> None:
        self._directory = directory
        self._spec = spec
        self._child = 0
        self._status: int | None = None
        self._killed = False
        self._deadline: float | None = None

    def start(self) -> None:
        """Start the task. Raises TaskFailedToStart when its command could not be executed."""
        go_read, go_write = os.pipe()
        error_read, error_write = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            os.close(go_write)
            os.close(error_read)
            self._become_task(go_read, error_write)
        os.close(go_read)
        os.close(error_write)
        try:
            self._record_start()
        except OSError as problem:  # a full disk, say; the process ends as its pipe closes
            raise TaskFailedToStart(f"the start could not be saved: {problem}") from None
        with contextlib.suppress(BrokenPipeError):  # it has been killed already
            os.write(go_write, b"go")
        os.close(go_write)
        with open(error_read, "rb") as pipe:
            error_text = pipe.read().decode("utf-8", "replace")
        if error_text:
            os.waitpid(self._child, 0)
            raise TaskFailedToStart(error_text)

    def run(self) -> "dict[str, Any]":
        """Wait for the end of the task and of its descendants; return the exit record."""
        while self._reap_descendants():
            if self._status is not None and not self._killed:
                self._set_deadline(time.monotonic())  # as in a container, descendants end with it
            received = signal.sigtimedwait(_SIGNALS, self._kill_if_due())
            if received is not None and received.si_signo == signal.SIGTERM:
                self._terminate()
            if self._straggler_timed_out():
                break
        return self._exit_record()

    # --- creating the process -------------------------------------------------------------------

    def _record_start(self) -> None:
        stat = process_stat(self._child)
        write_json(
            os.path.join(self._directory, "started.json"),
            {
                "pid": self._child,
                "start": stat.start if stat else 0,
                "supervisor": os.getpid(),
                "uid": os.geteuid(),
                "identity": self._spec.get("identity"),
                "boot": boot_id(),
                "at": time.time(),
                "record": self._spec.get("record"),
            },
        )
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {self._spec['task_id']}\n"
        log = os.open(self._spec["launch_log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(log, line.encode())
        os.close(log)

    def _become_task(self, go: int, error: int) -> "NoReturn":
        """In the new process: apply the specification, then execute the command."""
        try:
            if os.read(go, 2) != b"go":
                os._exit(127)
            os.setsid()
            self._redirect()
            self._set_rlimits()
            self._join_cgroup()
            os.chdir(self._spec["sandbox"])  # before switching to a user that may not get there
            self._change_user()
            os.umask(0o022)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            shell = self._spec["shell"]
            os.execve(shell, [shell, "-c", self._spec["cmd"]], self._spec["env"])
        except TaskFailedToStart as problem:
            os.write(error, str(problem).encode())
        except BaseException as problem:
            os.write(error, f"the command could not be started: {problem}".encode())
        os._exit(127)

    def _redirect(self) -> None:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            path = os.path.join(self._spec["sandbox"], name)
            os.dup2(_open_output(path), descriptor)

    def _set_rlimits(self) -> None:
        for name, soft, hard in self._spec.get("rlimits", ()):
            try:
                resource.setrlimit(getattr(resource, name), (soft, hard))
            except (ValueError, OSError) as problem:
                raise TaskFailedToStart(
                    f"rlimits.{name}: {soft} (soft), {hard} (hard) could not be set: {problem}; "
                    "raise the agent's own limit or lower the pod's"
                ) from None

    def _join_cgroup(self) -> None:
        cgroup = self._spec.get("cgroup")
        if not cgroup:
            return
        try:
            with open(os.path.join(cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
                file.write("0")
        except OSError as problem:
            raise TaskFailedToStart(f"could not join the cgroup {cgroup}: {problem}") from None

    def _change_user(self) -> None:
        identity = self._spec.get("identity")
        if not identity:
            return
        try:
            os.setgroups(identity["groups"])
            os.setgid(identity["gid"])
            os.setuid(identity["uid"])
        except OSError as problem:
            raise TaskFailedToStart(
                f"user {identity['name']}: the agent may not switch to it: {problem}"
            ) from None

    # --- killing the process --------------------------------------------------------------------

    def _reap_descendants(self) -> bool:
        """Reap ended processes; return whether any process of the task is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._child:
                self._status = status

    def _terminate(self) -> None:
        """Send SIGTERM and set the deadline; a later request can only shorten the grace period."""
        if self._status is not None:
            return
        if not self._killed:
            self._killed = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGTERM)
        self._set_deadline(time.monotonic() + self._grace())

    def _grace(self) -> float:
        try:
            with open(os.path.join(self._directory, "kill.json"), encoding="utf-8") as file:
                grace = json.load(file).get("grace")
        except (OSError, ValueError):
            grace = None  # a signal from elsewhere, such as the machine's shutdown
        return float(self._spec.get("grace", 0) if grace is None else grace)

    def _set_deadline(self, deadline: float) -> None:
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _kill_if_due(self) -> float:
        """Kill if the deadline has passed; return the seconds to wait for the next signal."""
        if self._deadline is None:
            return 60.0
        left = self._deadline - time.monotonic()
        if left > 0:
            return left
        self._kill_all()
        return 0.05

    def _kill_all(self) -> None:
        cgroup = self._spec.get("cgroup")
        if cgroup:
            with (
                contextlib.suppress(OSError),
                open(os.path.join(cgroup, "cgroup.kill"), "w", encoding="ascii") as file,
            ):
                file.write("1")
        kill_family(os.getpid(), self._child)

    def _straggler_timed_out(self) -> bool:
        return (
            self._status is not None
            and self._deadline is not None
            and time.monotonic() > self._deadline + STRAGGLER_TIMEOUT
        )

    def _exit_record(self) -> "dict[str, Any]":
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        return {
            "code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "killed": self._killed,
            "at": time.time(),
            "supervisor": os.getpid(),
        }


def _open_output(path: str) -> int:
    """Open the file for an output of the task, which other tasks of its user may have replaced by
    a link or by something that would never open."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise TaskFailedToStart(f"{path} is no regular file")
    os.set_blocking(descriptor, True)
    return descriptor


def _acquire_lock(directory: str) -> int | None:
    """Return the locked descriptor, kept open until exit; None if another supervisor has it."""
    lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        late = time.monotonic() > deadline
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as problem:
            if problem.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        if late:
            return None
        time.sleep(0.005)


def _adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that none escapes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _supervise(directory: str, report: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _adopt_orphans()
    exit_path = os.path.join(directory, "exit.json")
    lock = _acquire_lock(directory)
    if lock is None:
        return _report_outcome(report, "busy")
    if os.path.exists(os.path.join(directory, "started.json")):
        return _report_outcome(report, "started-before")
    if os.path.exists(os.path.join(directory, "kill.json")):
        return _report_outcome(report, "forbidden")
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    with open(0, "rb", closefd=False) as payload:
        supervisor = Supervisor(directory, json.load(payload))
    reserve_exit(exit_path)
    try:
        supervisor.start()
    except TaskFailedToStart as problem:
        write_exit(exit_path, {"error": str(problem), "at": time.time()})
        return _report_outcome(report, "failed")
    _report_outcome(report, "started")
    return write_exit(exit_path, supervisor.run())


def _report_outcome(report: int, outcome: str) -> None:
    os.write(report, json.dumps({"outcome": outcome}).encode())
    os.close(report)


def _detach(directory: str) -> None:
    """Detach from the agent's session, directory and output; keep descriptor 0."""
    os.setsid()
    os.chdir("/")
    log = os.open(
        os.path.join(directory, "supervisor.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
    )
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def main(directory: str) -> None:
    """Fork the supervisor, wait until the task runs or never will, and print the outcome."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        _detach(directory)
        _supervise(directory, write)
        sys.exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        sys.stdout.buffer.write(pipe.read())


if __name__ == "__main__":
    main(sys.argv[1])
