"""A program that runs beside this process, may be killed, and is started again in the same way."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from temporal_plans.worker.child_process import ChildProcess, start_child, stop_child

GRACE = 15.0
"""Seconds that a process has to end after SIGTERM."""


class ChildProgram:
    """A program with its arguments and its whole environment; its output is appended to ``log``."""

    def __init__(
        self, program: Path, arguments: Sequence[str], *, env: Mapping[str, str], log: Path
    ) -> None:
        self._program = program
        self._arguments = list(arguments)
        self._env = dict(env)
        self.log = log
        self._process: ChildProcess | None = None

    @property
    def name(self) -> str:
        return self._program.name

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int | None:
        """Its process id; None while it does not run."""
        return self._process.pid if self._process is not None and self.alive else None

    async def start(self) -> None:
        if self.alive:
            raise RuntimeError(f"{self.name} runs already")
        self._process = await self._begin()

    async def _begin(self) -> ChildProcess:
        environment = [f"{name}={value}" for name, value in self._env.items()]
        return await start_child(
            Path("/usr/bin/env"),
            ["-i", *environment, str(self._program), *self._arguments],
            output=self.log,
        )

    async def kill(self) -> None:
        """End it at once (SIGKILL); returns when it is gone."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        if self.alive:
            self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """End it in order; nothing happens when it does not run."""
        if self._process is not None:
            await stop_child(self._process, grace=GRACE)

    async def wait(self) -> int:
        """Wait until it ends, and return its exit code (-N for signal N)."""
        if self._process is None:
            raise RuntimeError(f"{self.name} was never started")
        return await self._process.wait()

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of its output."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
