"""What the processors of the machine did for a place."""

import os
import resource
from collections.abc import Iterable
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(running: Iterable[int]) -> float:
    """Seconds of processors that this process has taken, those that it has started and that have
    ended, and those that run."""
    ended = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in ended) + sum(map(_seconds, running))


def _seconds(pid: int) -> float:
    """With its own children that have ended. What has just ended has nothing any more."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    times = text.rpartition(")")[2].split()[11:15]
    return sum(map(int, times)) / _TICK
