"""A child process that ends with its parent process.

The child has a session of its own, so that Ctrl-C in a terminal reaches only the parent, which then
stops the child in order. If the parent dies without that, even by ``kill -9``, the kernel of Linux
sends the child SIGTERM (prctl(2), PR_SET_PDEATHSIG). On other systems the child keeps running.

The kernel's "parent" is the thread that started the child: start it from a thread that lives as
long as the process, such as that of an asyncio main loop.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class ChildProcess(Protocol):
    """What is asked of a child process, as ``asyncio.subprocess.Process`` has it."""

    @property
    def pid(self) -> int: ...
    @property
    def returncode(self) -> int | None: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...
    async def wait(self) -> int: ...


# Runs between fork and exec, in an interpreter of its own: a preexec_fn would run Python in a
# copy of a process with threads, which may deadlock. It keeps its pid when it becomes the program.
# The parent may die before prctl is called, so its process id is checked afterwards.
_LAUNCHER = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent process has ended")
os.execv(sys.argv[2], sys.argv[2:])
"""


async def start_child(
    program: Path, arguments: Sequence[str], *, output: Path, keep_open: Sequence[int] = ()
) -> asyncio.subprocess.Process:
    """Start ``program``, its standard output and error appended to the file ``output``.

    ``keep_open`` are further file descriptors that it inherits.
    """
    command = [str(program), *arguments]
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _LAUNCHER, str(os.getpid()), *command]
    with output.open("ab") as sink:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            pass_fds=keep_open,
        )


async def stop_child(process: ChildProcess, *, grace: float) -> int:
    """Stop a process with SIGTERM, after ``grace`` seconds with SIGKILL, and return its exit code
    (-N for signal N)."""
    for stop in (process.terminate, process.kill):
        if process.returncode is not None:
            return process.returncode
        try:
            stop()
            async with asyncio.timeout(grace):
                return await process.wait()
        except ProcessLookupError:
            return await process.wait()
        except TimeoutError:
            continue
    return await process.wait()
