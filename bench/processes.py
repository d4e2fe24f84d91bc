"""The measured server and worker processes, and their CPU time."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporal_plans.worker.dev import DevServer

_START_TIMEOUT = 60  # seconds
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Processes:
    address: str
    server: int
    worker: int


@dataclass(frozen=True)
class CpuTime:
    """Seconds of CPU time of each process and its threads, since its start."""

    server: float
    worker: float

    def since(self, before: "CpuTime") -> "CpuTime":
        return CpuTime(self.server - before.server, self.worker - before.worker)


@asynccontextmanager
async def running(directory: Path) -> AsyncGenerator[Processes]:
    """Run a new server with a database file in ``directory``, and a worker process."""
    async with DevServer(database=directory / "bench.db") as server:
        worker = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.worker", server.address),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        try:
            await _ready(worker)
            yield Processes(server.address, server.pid, worker.pid)
        finally:
            if worker.stdin:
                worker.stdin.close()
            await worker.wait()


async def _ready(worker: asyncio.subprocess.Process) -> None:
    assert worker.stdout is not None
    async with asyncio.timeout(_START_TIMEOUT):
        line = await worker.stdout.readline()
    if line != b"ready\n":
        raise RuntimeError(f"the worker did not start; its exit code is {await worker.wait()}")


def cpu_time(processes: Processes) -> CpuTime | None:
    """Return the CPU times from /proc; None where there is no /proc."""
    try:
        return CpuTime(_seconds(processes.server), _seconds(processes.worker))
    except OSError:
        return None


def _seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = fields[11], fields[12]  # proc(5): fields 14 and 15, two are before the ")"
    return (int(user) + int(system)) / _TICKS_PER_SECOND
