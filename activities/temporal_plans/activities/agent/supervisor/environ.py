"""The environment of another process, also while that replaces its program."""

import time
from pathlib import Path

_TIMEOUT = 0.2  # seconds; an exec takes some milliseconds, or the process is hostile
_INTERVAL = 0.001  # seconds


def environ_of(pid: int, deadline: float | None = None) -> bytes:
    """Return the environment of a process, with NUL behind each entry. Raises OSError.

    From an ``exec`` until the new program is loaded the kernel shows neither environment nor
    arguments. That is awaited, until ``deadline`` by the monotonic clock: callers that look at many
    processes have one for all.
    """
    environ = Path(f"/proc/{pid}/environ")
    if deadline is None:
        deadline = time.monotonic() + _TIMEOUT
    while not (found := environ.read_bytes()):
        if _has_program(pid):
            return environ.read_bytes()
        if not _has_memory(pid) or time.monotonic() > deadline:
            return b""
        time.sleep(_INTERVAL)
    return found


def _has_program(pid: int) -> bool:
    """Whether it has arguments: nowadays the kernel starts no program without."""
    return bool(Path(f"/proc/{pid}/cmdline").read_bytes())


def _has_memory(pid: int) -> bool:
    """Threads of the kernel and processes that have ended have none."""
    return not Path(f"/proc/{pid}/statm").read_text().startswith("0 ")
