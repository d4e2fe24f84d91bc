"""A child process that does not outlive us unnoticed.

It has a session of its own, so that Ctrl-C in a terminal reaches us alone and we end it in order.
On Linux the kernel sends it SIGTERM when we die without having ended it, be it by ``kill -9``
(prctl(2), PR_SET_PDEATHSIG). Elsewhere nothing does, and the next start tells that it still runs.

The kernel's "parent" is the thread that started the child: start it from one that lives as long
as the process, which the thread of an asyncio main loop does.
"""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

# Runs between fork and exec, in an interpreter of its own: a preexec_fn would run Python in a
# copy of a process with threads, which may deadlock. It keeps its pid when it becomes the program.
# The parent may be dead before the kernel knows whom to tell, hence the look at it afterwards.
_TETHERED = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that started this one is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


async def start_child(
    program: Path, arguments: Sequence[str], *, output: Path, keep_open: Sequence[int] = ()
) -> asyncio.subprocess.Process:
    """``program`` with ``arguments``, its standard output and error appended to ``output``.

    ``keep_open`` are file descriptors that it inherits beside these.
    """
    command = [str(program), *arguments]
    if sys.platform == "linux":
        command = [sys.executable, "-I", "-S", "-c", _TETHERED, str(os.getpid()), *command]
    with output.open("ab") as sink:
        return await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            pass_fds=keep_open,
        )


async def stop_child(process: asyncio.subprocess.Process, *, grace: float) -> int:
    """End it with SIGTERM, after ``grace`` seconds with SIGKILL; its exit code, -N for signal N."""
    for end in (process.terminate, process.kill):
        if process.returncode is not None:
            return process.returncode
        try:
            end()
            async with asyncio.timeout(grace):
                return await process.wait()
        except ProcessLookupError:
            return await process.wait()
        except TimeoutError:
            continue
    return await process.wait()
