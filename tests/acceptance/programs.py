"""The processes of a cluster: started, killed and started again, their output kept."""

import asyncio
import os
import random
import shlex
import signal
import socket
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from temporal_plans.worker.child_process import start_child, stop_child
from temporal_plans.worker.dev import DevServer

GRACE = 15.0
"""Seconds that a process has to end after SIGTERM."""

PORTS = range(15000, 20000)
"""Below what the kernel gives to outgoing connections: while the server is down, none of those who
try to reach it may be given the port that it will want back."""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it printed."""

    command: str
    code: int | None
    out: str
    err: str

    @property
    def both(self) -> str:
        return self.out + self.err

    def __str__(self) -> str:
        return f"$ {self.command}\n{self.both.rstrip()}\n[exit code {self.code}]"


async def run(
    program: Path, *arguments: str, env: Mapping[str, str], cwd: Path, limit: float
) -> Said:
    """Run a command to its end. One that takes longer than ``limit`` seconds is killed, and the
    AssertionError has what it said until then."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = await asyncio.create_subprocess_exec(
            str(program),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(env),
            cwd=cwd,
        )
        try:
            async with asyncio.timeout(limit):
                await process.wait()
        except TimeoutError:
            said = _said(process, program, arguments, out, err)
            raise AssertionError(f"not over in {limit:g} s:\n{said}") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _said(process, program, arguments, out, err)


def _said(
    process: asyncio.subprocess.Process,
    program: Path,
    arguments: Sequence[str],
    out: IO[bytes],
    err: IO[bytes],
) -> Said:
    texts: list[str] = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read().decode(errors="replace"))
    return Said(shlex.join([program.name, *arguments]), process.returncode, *texts)


class Member(Protocol):
    """A process of a cluster that may be killed and started again."""

    @property
    def log(self) -> Path: ...
    async def start(self) -> None: ...
    async def kill(self) -> None: ...
    async def stop(self) -> None: ...

    @property
    def pid(self) -> int | None:
        """Its process id; None when it does not run."""
        ...


class Program:
    """A command of ours that runs until it is told to stop."""

    def __init__(
        self, program: Path, arguments: Sequence[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        self._program = program
        self._arguments = list(arguments)
        self._env = dict(env)
        self.log = log
        self._process: asyncio.subprocess.Process | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self.alive else None

    async def start(self) -> None:
        assert not self.alive, f"{self._program.name} runs already"
        environment = [f"{name}={value}" for name, value in self._env.items()]
        self._process = await start_child(
            Path("/usr/bin/env"),
            ["-i", *environment, str(self._program), *self._arguments],
            output=self.log,
        )

    async def kill(self) -> None:
        """``kill -9``; returns when it is gone."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        if self._process is not None:
            await stop_child(self._process, grace=GRACE)


class Server:
    """A Temporal server on one database file and one port, whatever happens to its process."""

    def __init__(self, database: Path, log: Path) -> None:
        self._database = database
        self.port = free_port()
        self._running: DevServer | None = None
        self.log = log

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int | None:
        return self._running.pid if self._running is not None else None

    async def start(self) -> None:
        assert self._running is None, "the server runs already"
        server = DevServer(database=self._database, port=self.port, log=self.log)
        self._running = await server.__aenter__()

    async def kill(self) -> None:
        """``kill -9``; returns when it is gone."""
        assert self._running is not None
        os.kill(self._running.pid, signal.SIGKILL)
        await self._running.wait()
        await self.stop()

    async def stop(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            await running.__aexit__(None, None, None)


def free_port() -> int:
    """A port of PORTS that nobody listens on."""
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError(f"all ports of {PORTS} are in use")
