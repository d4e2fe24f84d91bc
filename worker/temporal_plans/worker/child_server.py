"""A Temporal server that runs beside this process, may be killed, and is started again."""

import os
import signal
from pathlib import Path

from temporal_plans.worker.dev import DevServer
from temporal_plans.worker.ports import LOOPBACK, free_port


class ChildServer:
    """A Temporal server on one database file and one port, whatever happens to its process."""

    def __init__(self, database: Path, log: Path) -> None:
        self._database = database
        self.port = free_port()
        self._running: DevServer | None = None
        self.log = log

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int | None:
        """Its process id; None while it does not run."""
        return self._running.pid if self._running is not None else None

    async def start(self) -> None:
        """Start it, and wait until it answers. Raises DevServerError."""
        if self._running is not None:
            raise RuntimeError("the Temporal server runs already")
        server = DevServer(database=self._database, port=self.port, log=self.log)
        self._running = await server.__aenter__()

    async def kill(self) -> None:
        """End it at once (SIGKILL); returns when it is gone."""
        if self._running is None:
            raise RuntimeError("the Temporal server does not run")
        os.kill(self._running.pid, signal.SIGKILL)
        await self._running.wait()
        await self.stop()

    async def stop(self) -> None:
        """End it in order; nothing happens when it does not run."""
        if self._running is not None:
            running, self._running = self._running, None
            await running.__aexit__(None, None, None)

    async def wait(self) -> int:
        """Wait until its process ends, and return the exit code (-N for signal N)."""
        if self._running is None:
            raise RuntimeError("the Temporal server does not run")
        return await self._running.wait()
