"""The processes that a task leaves when its supervisor was killed.

While the supervisor lives it is an ancestor of all of them: it adopts orphans and ends them with
the task. Without it they are children of the machine's first process, and these signs are left:

- the marks: supplementary groups that only root can drop (``sandbox.marks``);
- the environment: ``MESOS_SANDBOX`` is the task's sandbox, and every task has its own;
- the standard output and error: the task's, in the sandbox;
- the session of the task's first process, whose id the kernel reserves as long as the session has
  members. Process ids are reused, so the session counts only if its first process is still the
  recorded one, or one member has another sign of the task, or works in the sandbox.

A process with the marks is the task's if it was started after the task, in the same boot of the
machine. One with the environment or the output must be of the task's user, too (or of any user, if
the task runs as root, which may switch). Its descendants are the task's as well. Each process is
identified by its id and its start time, so that no other process is killed.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from temporal_plans.activities.agent.host.records import StartRecord
from temporal_plans.activities.agent.sandbox.marks import marks_of
from temporal_plans.activities.agent.supervisor import shim
from temporal_plans.activities.agent.supervisor.shim import ProcessStat
from temporal_plans.activities.agent.supervisor.signs import Signs, signs_of, user_of

_log = logging.getLogger(__name__)

_POLL_INTERVAL = 0.02  # seconds
_LOOKS = 2


@dataclass(frozen=True, eq=False)
class Trace:
    """What identifies the processes of one task. ``started`` is None when its record is lost."""

    sandbox: Path
    started: StartRecord | None

    @property
    def uid(self) -> int | None:
        """The task's user; None when unknown."""
        if self.started is None:
            return None
        return self.started.identity.uid if self.started.identity else self.started.uid

    @property
    def start(self) -> int:
        """When the task was started; 0 when unknown."""
        return self.started.start if self.started else 0

    def may_include(self, process: ProcessStat) -> bool:
        """Whether the process was started after the task, by its user."""
        return process.start >= self.start and self.uid in (None, 0, user_of(process.pid))


async def end_strays(
    traces: Sequence[Trace], timeout: float = shim.STRAGGLER_TIMEOUT
) -> tuple[int, ...]:
    """Kill the processes of tasks without supervisors. Return the ids of those that still exist
    after ``timeout`` seconds, such as processes in the middle of disk I/O.

    A look may miss one that forks and ends meanwhile, so two in turn have to find nothing.
    """
    deadline = asyncio.get_running_loop().time() + timeout
    killed: dict[int, int] = {}
    calm = 0
    while calm < _LOOKS:
        left = await asyncio.to_thread(_kill_strays, traces, killed)
        if left and asyncio.get_running_loop().time() > deadline:
            _log.error("processes of ended tasks can't be killed: %s", ", ".join(map(str, left)))
            return left
        calm = 0 if left else calm + 1
        if calm < _LOOKS:
            await asyncio.sleep(_POLL_INTERVAL)
    return ()


def _kill_strays(traces: Sequence[Trace], killed: dict[int, int]) -> tuple[int, ...]:
    """Kill what is found. Return its ids, and those of ``killed`` that are still ending: their
    signs are gone before they are. ``killed`` has start times by ids."""
    processes = _processes()
    left = {pid for pid, start in killed.items() if _start_of(processes.get(pid)) == start}
    for process in strays(traces):
        kill_process(process)
        killed[process.pid] = process.start
        left.add(process.pid)
    return tuple(sorted(left))


def _start_of(process: ProcessStat | None) -> int | None:
    return None if process is None else process.start


def strays(traces: Iterable[Trace]) -> list[ProcessStat]:
    """Return the running processes of tasks without supervisors."""
    boot = shim.boot_id()
    current = [one for one in traces if one.started is None or one.started.boot == boot]
    if not current:
        return []
    processes = _processes()
    signs = _signs(current, processes)
    roots: set[int] = set()
    for trace in current:
        marked = _marked(trace, processes, signs)
        roots |= marked | _session_of(trace, marked, processes, signs)
    found = _with_descendants(roots, processes) - _own_ancestry(processes)
    return [processes[pid] for pid in sorted(found)]


def first_process(sandbox: Path) -> ProcessStat | None:
    """Return the first process of a task without supervisor whose start record is lost: of the
    processes with its environment, the oldest first of a session, or else the oldest."""
    trace, processes = Trace(sandbox, None), _processes()
    marked = _marked(trace, processes, _signs([trace], processes))
    return min(
        (processes[pid] for pid in marked),
        key=lambda one: (one.session != one.pid, one.start),
        default=None,
    )


def first_child(supervisor: int) -> ProcessStat | None:
    """Return the task's first process, a child of its supervisor in a session of its own."""
    children = (one for one in _processes().values() if one.parent == supervisor)
    return min(
        (one for one in children if one.session == one.pid),
        key=lambda one: one.start,
        default=None,
    )


def kill_process(process: ProcessStat) -> None:
    """Kill a process, and never a later one with the same id."""
    try:
        pidfd = os.pidfd_open(process.pid)
    except OSError:
        return
    try:
        now = shim.process_stat(process.pid)
        if now is not None and now.start == process.start:
            with suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def _processes() -> dict[int, ProcessStat]:
    """Return all processes that have not ended."""
    stats = (shim.process_stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {stat.pid: stat for stat in stats if stat is not None and stat.state not in "ZX"}


def _signs(traces: Sequence[Trace], processes: Mapping[int, ProcessStat]) -> Mapping[int, Signs]:
    earliest = min(trace.start for trace in traces)
    users = {trace.uid for trace in traces if trace.uid is not None}
    users |= {_owner(trace.sandbox) for trace in traces if trace.uid is None}
    return signs_of([one.pid for one in processes.values() if one.start >= earliest], users)


def _owner(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_uid
    return os.geteuid()


def _marked(
    trace: Trace, processes: Mapping[int, ProcessStat], signs: Mapping[int, Signs]
) -> set[int]:
    """Return the processes with the task's marks, environment or output."""
    name, marks = trace.sandbox.parent.name, marks_of(trace.sandbox)
    path = os.path.realpath(trace.sandbox)
    outputs = {f"{path}/stdout", f"{path}/stderr"}

    def belongs(sign: Signs) -> bool:
        if not outputs.isdisjoint(sign.outputs):
            return True
        named = bool(sign.sandbox) and Path(sign.sandbox).parent.name == name
        return named and os.path.realpath(sign.sandbox) == path

    return {
        pid
        for pid, sign in signs.items()
        if (marks <= sign.groups and processes[pid].start >= trace.start)
        or (belongs(sign) and trace.may_include(processes[pid]))
    }


def _session_of(
    trace: Trace,
    marked: Collection[int],
    processes: Mapping[int, ProcessStat],
    signs: Mapping[int, Signs],
) -> set[int]:
    """Return the members of the session of a task's first process, if it is certainly that."""
    if trace.started is None:
        return set()
    first = processes.get(trace.started.pid)
    if first is not None and first.start != trace.start:
        return set()  # the id was reused
    members = {one.pid for one in processes.values() if one.session == trace.started.pid}
    if first is not None:
        return members | {first.pid}
    inside = f"{os.path.realpath(trace.sandbox)}/"
    directories = (f"{signs.get(pid, Signs()).directory}/" for pid in members)
    if members & set(marked) or any(one.startswith(inside) for one in directories):
        return members
    return set()


def _with_descendants(roots: set[int], processes: Mapping[int, ProcessStat]) -> set[int]:
    children: dict[int, list[int]] = {}
    for process in processes.values():
        children.setdefault(process.parent, []).append(process.pid)
    found, waiting = set(roots), list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(new)
        waiting += new
    return found


def _own_ancestry(processes: Mapping[int, ProcessStat]) -> set[int]:
    """Return this process and its ancestors: an agent may run in a task of another agent."""
    own, pid = {1}, os.getpid()
    while pid and pid not in own:
        own.add(pid)
        pid = processes[pid].parent if pid in processes else 0
    return own
