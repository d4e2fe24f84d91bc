"""The processes of a cluster: started, killed and started again, their output kept."""

import asyncio
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from temporal_plans.worker.child_program import ChildProgram
from temporal_plans.worker.child_server import ChildServer


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


Program = ChildProgram
"""A command of ours that runs until it is told to stop."""

Server = ChildServer
"""A Temporal server on one database file and one port."""
