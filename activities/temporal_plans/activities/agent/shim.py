"""The supervisor of one task: a tiny process of its own that outlives the agent.

Run as ``python -I -S shim.py <task directory>`` with a ``ShimSpec`` as JSON on standard input. That
must be a memfd: the supervisor keeps it as descriptor 0 for its whole life, so an agent that was
restarted reads the task's environment there and no secret is ever on a disk.

It imports the standard library only and starts in tens of milliseconds. It forks; the child becomes
the supervisor in its own session, the parent prints the outcome (one JSON object) and exits.

Why a task starts at most once, whatever is killed when:

1. The supervisor holds ``flock`` on ``lock`` as long as it lives; who doesn't get it goes away.
2. Under the lock it looks for ``kill.json`` (never start) and ``started.json`` (started before).
3. The task's process is forked, but waits on a pipe until ``started.json`` is on disk. If the
   supervisor dies before, the pipe closes and the process exits without having run anything.

SIGTERM asks the supervisor to end the task: SIGTERM to the task's process group, then after the
grace period SIGKILL to everything that descends from it. So a kill goes on when the agent dies.
"""

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import resource
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would be an eighth of the start-up
    from typing import Any, NoReturn

LOCK_PATIENCE = 0.5
"""Seconds to wait for the lock: others only hold it for a moment to see whether we live."""

STRAGGLER_PATIENCE = 10.0
"""Seconds until the end of the task is reported although a killed descendant won't go away."""

_SIGNALS = {signal.SIGCHLD, signal.SIGTERM}
_PR_SET_CHILD_SUBREAPER = 36


class ProcessStat:
    """What ``/proc/<pid>/stat`` says. ``start`` is in clock ticks since the machine's boot."""

    def __init__(self, pid: int, state: str, parent: int, session: int, start: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.session = session
        self.start = start


def process_stat(pid: int) -> ProcessStat | None:
    """The process of that number, or None when there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()  # the command's name may hold anything
    return ProcessStat(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def process_family(root: int, session: int | None = None) -> set[int]:
    """All living processes that descend from ``root``, or belong to ``session``; not ``root``."""
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
    """SIGKILL all of ``process_family``; how many there were."""
    family = process_family(root, session)
    for pid in family:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return len(family)


def boot_id() -> str:
    """Names this boot of the machine: process numbers of another one mean nothing."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


def write_json(path: str, value: "dict[str, Any]") -> None:
    """Writes a file so that others see all of it or nothing, also after a loss of power."""
    temporary = f"{path}.{os.getpid()}.new"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(value, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


class TaskFailedToStart(Exception):
    """The task's process could not be made as asked; the text says what to change."""


class Supervisor:
    """Starts one process, waits for its end, ends what is left of it, and writes down how."""

    def __init__(self, directory: str, spec: "dict[str, Any]") -> None:
        self._directory = directory
        self._spec = spec
        self._child = 0
        self._status: int | None = None
        self._killed = False
        self._deadline: float | None = None

    def start(self) -> None:
        """Starts the task; TaskFailedToStart when its command could not be executed."""
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
            raise TaskFailedToStart(f"the start could not be written down: {problem}") from None
        os.write(go_write, b"go")
        os.close(go_write)
        with open(error_read, "rb") as pipe:
            complaint = pipe.read().decode("utf-8", "replace")
        if complaint:
            os.waitpid(self._child, 0)
            raise TaskFailedToStart(complaint)

    def run(self) -> "dict[str, Any]":
        """Waits for the end of the task and of all that it started; the exit record."""
        while self._descendants_left():
            if self._status is not None and not self._killed:
                self._end_by(time.monotonic())  # like a container: ends with its first process
            received = signal.sigtimedwait(_SIGNALS, self._act())
            if received is not None and received.si_signo == signal.SIGTERM:
                self._terminate()
            if self._gave_up_waiting():
                break
        return self._exit_record()

    # --- making the process ---------------------------------------------------------------------

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
            },
        )
        line = f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {self._spec['task_id']}\n"
        log = os.open(self._spec["launch_log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(log, line.encode())
        os.close(log)

    def _become_task(self, go: int, error: int) -> "NoReturn":
        """In the new process: everything that the task asked for, then its command."""
        try:
            if os.read(go, 2) != b"go":
                os._exit(127)
            os.setsid()
            self._redirect()
            self._limit()
            self._join_cgroup()
            os.chdir(self._spec["sandbox"])  # as we are: the user may be let in, but not past
            self._change_user()
            os.umask(0o022)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, set())
            os.execve("/bin/sh", ["/bin/sh", "-c", self._spec["cmd"]], self._spec["env"])
        except TaskFailedToStart as problem:
            os.write(error, str(problem).encode())
        except BaseException as problem:
            os.write(error, f"the command could not be started: {problem}".encode())
        os._exit(127)

    def _redirect(self) -> None:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            path = os.path.join(self._spec["sandbox"], name)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
            os.dup2(os.open(path, flags, 0o644), descriptor)

    def _limit(self) -> None:
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

    # --- ending it ------------------------------------------------------------------------------

    def _descendants_left(self) -> bool:
        """Reaps what has ended; whether anything of the task is left."""
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
        """Begins to end the task; asked again, the shorter grace period counts."""
        if self._status is not None:
            return
        if not self._killed:
            self._killed = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child, signal.SIGTERM)
        self._end_by(time.monotonic() + self._grace())

    def _grace(self) -> float:
        try:
            with open(os.path.join(self._directory, "kill.json"), encoding="utf-8") as file:
                grace = json.load(file).get("grace")
        except (OSError, ValueError):
            grace = None  # a signal from elsewhere, such as the machine's shutdown
        return float(self._spec.get("grace", 0) if grace is None else grace)

    def _end_by(self, deadline: float) -> None:
        self._deadline = deadline if self._deadline is None else min(self._deadline, deadline)

    def _act(self) -> float:
        """Kills when the deadline has passed; how long to wait for the next signal, in seconds."""
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

    def _gave_up_waiting(self) -> bool:
        return (
            self._status is not None
            and self._deadline is not None
            and time.monotonic() > self._deadline + STRAGGLER_PATIENCE
        )

    def _exit_record(self) -> "dict[str, Any]":
        code = None if self._status is None else os.waitstatus_to_exitcode(self._status)
        return {
            "code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "killed": self._killed,
            "at": time.time(),
        }


def _acquire(directory: str) -> int | None:
    """The locked descriptor, kept open for life; None when another supervisor has it."""
    lock = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except OSError as problem:
            if problem.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        if time.monotonic() > deadline:
            return None
        time.sleep(0.005)


def _adopt_orphans() -> None:
    """Descendants that lose their parent become ours, so that none escapes."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _supervise(directory: str, report: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    _adopt_orphans()
    exit_path = os.path.join(directory, "exit.json")
    lock = _acquire(directory)
    if lock is None:
        return _tell(report, "busy")
    if os.path.exists(os.path.join(directory, "started.json")):
        return _tell(report, "started-before")
    if os.path.exists(os.path.join(directory, "kill.json")):
        return _tell(report, "forbidden")
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)
    with open(0, "rb", closefd=False) as payload:
        supervisor = Supervisor(directory, json.load(payload))
    try:
        supervisor.start()
    except TaskFailedToStart as problem:
        write_json(exit_path, {"error": str(problem), "at": time.time()})
        return _tell(report, "failed")
    _tell(report, "started")
    return write_json(exit_path, supervisor.run())


def _tell(report: int, outcome: str) -> None:
    os.write(report, json.dumps({"outcome": outcome}).encode())
    os.close(report)


def _detach(directory: str) -> None:
    """Leaves everything of the agent but descriptor 0."""
    os.setsid()
    os.chdir("/")
    log = os.open(
        os.path.join(directory, "supervisor.log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600
    )
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def main(directory: str) -> None:
    """Forks the supervisor, waits until the task runs or never will, and prints which."""
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
