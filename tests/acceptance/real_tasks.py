"""The tasks that really run on this machine, as the kernel knows them.

A task's working directory is its sandbox, ``<work directory>/tasks/<task id>/sandbox``, whoever
supervises it and whether or not its agent lives.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from pauses import PATIENCE
from temporal_plans.activities.agent.host.layout import WorkDir

_SANDBOX = "sandbox"


def running(work_dirs: list[Path]) -> dict[str, set[int]]:
    """The ids of tasks with living processes, and these. Checks of a task count as the task's."""
    roots = [str(path / "tasks") + os.sep for path in work_dirs]
    found: dict[str, set[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and (task := _task_of(int(entry.name), roots)):
            found.setdefault(task, set()).add(int(entry.name))
    return found


def launches(work_dirs: list[Path]) -> Counter[str]:
    """How many processes were ever started for each task id, as the agents' logs have it."""
    return Counter(
        line.split()[-1]
        for work_dir in work_dirs
        if (log := work_dir / "launches.log").exists()
        for line in log.read_text().splitlines()
    )


def name_of(task_id: str) -> str:
    """``hello-0-server`` of ``hello-world__hello-0-server__<unique>``."""
    return task_id.split("__")[1]


def kill(task: str, work_dirs: list[Path]) -> None:
    """All processes of a task that runs, as the kernel would when memory is short. The end of one
    may bring that of another. KeyError for a task that does not run."""
    for pid in running(work_dirs)[task]:
        _kill(pid, task, work_dirs)


async def end_all(work_dirs: list[Path], *, within: float = PATIENCE) -> None:
    """Kill all tasks, and wait until they and their supervisors are gone. No agent may live."""
    deadline = time.monotonic() + within
    while (left := running(work_dirs)) or _supervisors(work_dirs):
        for task, pids in left.items():
            for pid in pids:
                _kill(pid, task, work_dirs)
        assert time.monotonic() < deadline, f"still there: {left or _supervisors(work_dirs)}"
        await asyncio.sleep(0.05)


def _supervisors(work_dirs: list[Path]) -> list[int]:
    """They end by themselves when their task has."""
    return [
        supervisor
        for work_dir in work_dirs
        if (work_dir / "tasks").is_dir()
        for task in WorkDir(work_dir).tasks()
        if (supervisor := task.supervisor()) is not None
    ]


def _kill(pid: int, task: str, work_dirs: list[Path]) -> None:
    """The number may be another's by now, so it is looked at again when it can't change hands any
    more."""
    with suppress(ProcessLookupError, OSError):
        handle = os.pidfd_open(pid)
        try:
            roots = [str(path / "tasks") + os.sep for path in work_dirs]
            if _task_of(pid, roots) == task:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def _task_of(pid: int, roots: list[str]) -> str:
    try:
        directory = os.readlink(f"/proc/{pid}/cwd")
    except OSError:  # it has ended, or is another user's
        return ""
    for root in roots:
        if directory.startswith(root):
            name, _, rest = directory.removeprefix(root).partition(os.sep)
            return unquote(name) if rest.split(os.sep)[0].startswith(_SANDBOX) else ""
    return ""
