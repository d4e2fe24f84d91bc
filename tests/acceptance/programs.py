"""The processes of a cluster: started, killed and started again, their output kept."""

import asyncio
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from acceptance.forked import Forked, fork
from temporal_plans.worker.child_process import ChildProcess
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

    async def start(out: IO[bytes], err: IO[bytes]) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            str(program),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(env),
            cwd=cwd,
        )

    return await _to_its_end([program.name, *arguments], start, limit)


async def run_forked(
    program: Path, *arguments: str, env: Mapping[str, str], cwd: Path, limit: float
) -> Said:
    """Run ``temporal-plan`` so, in a process that has imported it (``forked``)."""

    async def start(out: IO[bytes], err: IO[bytes]) -> Forked:
        return await fork(program, *arguments, out=out, err=err, env=env, cwd=cwd)

    return await _to_its_end([program.name, *arguments], start, limit)


async def _to_its_end(
    words: Sequence[str],
    start: Callable[[IO[bytes], IO[bytes]], Awaitable[ChildProcess]],
    limit: float,
) -> Said:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = await start(out, err)
        try:
            async with asyncio.timeout(limit):
                await process.wait()
        except TimeoutError:
            said = _said(process.returncode, words, out, err)
            raise AssertionError(f"not over in {limit:g} s:\n{said}") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _said(process.returncode, words, out, err)


def _said(code: int | None, words: Sequence[str], out: IO[bytes], err: IO[bytes]) -> Said:
    texts: list[str] = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read().decode(errors="replace"))
    return Said(shlex.join(words), code, *texts)


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


class ForkedProgram(ChildProgram):
    """The same, in a process that has imported it (``forked``)."""

    async def _begin(self) -> ChildProcess:
        with self.log.open("ab") as sink:
            return await fork(
                self._program, *self._arguments, out=sink, err=sink, env=self._env, cwd=Path.cwd()
            )


Server = ChildServer
"""A Temporal server on one database file and one port."""
