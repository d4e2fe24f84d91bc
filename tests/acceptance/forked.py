"""Commands and agents in processes that need not import anything: tests start hundreds of them, and
most of what one takes of the processor is importing.

Each process of tests has one process that has imported the commands and does nothing but fork
(``forker``). What it forks carries out a command line as the installed script does, in a process,
session, directory and environment of its own, and ends with the process of tests. Shells reach it
by a script named ``temporal-plan`` that passes on its files and signals (``on_path``). Tests of how
commands start, all workers, and the wheel's commands start the installed script itself.
"""

import asyncio
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

_FORKER = Path(__file__).with_name("forker.py")
_LAUNCHER = Path(__file__).with_name("launcher.py")
_NUMBER_LIMIT = 100
"""Bytes of what a keeper tells."""


class Forked:
    """A process that runs, as ``asyncio.subprocess.Process`` has it."""

    def __init__(self, pid: int, told: socket.socket) -> None:
        self.pid = pid
        self._ended = asyncio.create_task(_code(told))

    @property
    def returncode(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Wait for its end; return its exit code."""
        return await asyncio.shield(self._ended)

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):  # it has ended, which is not told yet
            os.kill(self.pid, number)


async def fork(
    program: Path,
    *arguments: str,
    out: IO[bytes],
    err: IO[bytes],
    env: Mapping[str, str],
    cwd: Path,
) -> Forked:
    """Start a process without input."""
    told, teller = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    told.setblocking(False)
    with teller:
        request = {"argv": [str(program), *arguments], "env": dict(env), "cwd": str(cwd)}
        files = [out.fileno(), err.fileno(), teller.fileno()]
        socket.send_fds(_forker(), [json.dumps(request).encode()], files)
    return Forked(await _number(told), told)


async def _code(told: socket.socket) -> int:
    with told:
        return await _number(told)


async def _number(told: socket.socket) -> int:
    said = await asyncio.get_running_loop().sock_recv(told, _NUMBER_LIMIT)
    assert said, "the process that forks has ended"
    return int(said)


def on_path(env: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Write the script for shells into a directory; return the variables with which they find it
    before all other programs."""
    script = directory / "temporal-plan"
    script.write_text(f"#!{sys.executable} -IS\n{_LAUNCHER.read_text()}")
    script.chmod(0o755)
    return {**env, "PATH": f"{directory}{os.pathsep}{env['PATH']}", "TESTS_FORK": _door()}


@cache
def _door() -> str:
    """Start to listen to scripts; return the path of the socket."""
    folder = tempfile.mkdtemp(prefix="temporal-plans-")
    atexit.register(shutil.rmtree, folder)
    door = f"{folder}/door"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(door)
        listening.listen(64)
        socket.send_fds(_forker(), [b"listen"], [listening.fileno()])
    return door


@cache
def _forker() -> socket.socket:
    """Start the process that forks; it ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        forker = subprocess.Popen(
            [sys.executable, str(_FORKER), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        forker.wait()

    atexit.register(end)
    return ours
