"""The process that holds a task's lock: its supervisor.

The lock's file names the process, but the kernel knows it: a damaged file must neither hide a
supervisor nor make another process look like one.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_END_TIMEOUT = 0.1  # seconds
_POLL_INTERVAL = 0.002  # seconds


class LockHolder(NamedTuple):
    """The process with a lock; ``pid`` is 0 if it is not found. ``damaged``: the file names no
    process, or another one."""

    pid: int
    damaged: bool = False


def lock_holder(lock: Path) -> LockHolder | None:
    """Return the process that holds a lock; None when the lock is free.

    The holder is alive, for the kernel releases the lock with the process. So the id can't belong
    to another process. One that is just ending has no open files any more, and the lock for another
    moment.
    """
    deadline = time.monotonic() + _END_TIMEOUT
    while (holder := _holder(lock)) is not None and holder.pid == 0 and holder.damaged:
        if time.monotonic() > deadline:
            break
        time.sleep(_POLL_INTERVAL)
    return holder


def _holder(lock: Path) -> LockHolder | None:
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        written = os.pread(descriptor, 20, 0)
        file = os.fstat(descriptor)
        named = int(written) if written.isdigit() else 0
        if named and _holds(named, lock, file):
            return LockHolder(named)
        found = next((pid for pid in _candidates(lock, file) if _holds(pid, lock, file)), 0)
        return LockHolder(found, damaged=bool(written))  # an empty file may yet be written
    else:
        return None
    finally:
        os.close(descriptor)


def _holds(pid: int, lock: Path, file: os.stat_result) -> bool:
    """Whether the process has the file open, as a supervisor has; the task's processes close it."""
    if pid == os.getpid():
        return False
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except PermissionError:
        return _is_supervisor(pid, lock)
    except OSError:
        return False
    for name in names:
        with suppress(OSError):
            found = os.stat(f"/proc/{pid}/fd/{name}")
            if (found.st_dev, found.st_ino) == (file.st_dev, file.st_ino):
                return True
    return False


def _candidates(lock: Path, file: os.stat_result) -> Iterator[int]:
    """Yield processes with a lock on a file of that number, then supervisors by their arguments:
    not every system lists locks."""
    with suppress(OSError), open("/proc/locks", encoding="ascii") as locks:
        for line in locks:
            fields = line.replace("->", "").split()
            if fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == str(file.st_ino):
                yield int(fields[4])
    yield from (
        int(name)
        for name in os.listdir("/proc")
        if name.isdigit() and _is_supervisor(int(name), lock)
    )


def _is_supervisor(pid: int, lock: Path) -> bool:
    with suppress(OSError):
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return os.fsencode(lock.parent) in arguments[1:]
    return False
