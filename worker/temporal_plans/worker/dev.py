"""A Temporal server of our own, for ``temporal plan dev``, the demo, tests and the benchmark.

It is the ``temporal server start-dev`` of Temporal's CLI, a real server in one process, with the
settings below. With the CLI's defaults every message between workflows takes 50 ms, and timers are
up to a second late.
"""

import asyncio
import os
import socket
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError

from temporal_plans.activities.mechanics.file_lock import try_lock
from temporal_plans.domain.values.failure import UserFacingError
from temporal_plans.worker.child_process import start_child, stop_child
from temporal_plans.worker.server_binary import server_binary

DYNAMIC_CONFIG: Mapping[str, str] = {
    # A dev server has one history shard, and by default each queue of a shard is read 20 times a
    # second: 50 ms for every message between workflows.
    "history.transferProcessorMaxPollRPS": "2000",
    "history.timerProcessorMaxPollRPS": "2000",
    "history.visibilityProcessorMaxPollRPS": "200",
    "history.transferProcessorSchedulerWorkerCount": "32",
    # By default a timer fires up to a second late.
    "history.timerProcessorMaxTimeShift": '"10ms"',
    "frontend.WorkflowPauseEnabled": "true",
}
"""The settings that differ from the CLI's. State them with every measurement on a dev server."""

SQLITE_PRAGMAS: Mapping[str, str] = {
    # With SQLite's defaults every commit is synced to the disk, which limits the server to ten
    # steps a second. With these, data survives kill -9 of the server, but not a power failure.
    "journal_mode": "wal",
    "synchronous": "normal",
}

_START_ATTEMPT_LIMIT = 3
_ADDRESS_IN_USE = "address already in use"


class DevServerError(UserFacingError, RuntimeError):
    """The embedded Temporal server did not start."""


class PortInUseError(DevServerError):
    """Another process listens on a requested port."""

    def __init__(self, ip: str, port: int, flag: str) -> None:
        super().__init__(
            f"port {port} of {ip} is in use, maybe by another Temporal server; "
            f"choose a free port with {flag}"
        )
        self.port = port


class DatabaseInUseError(DevServerError):
    """Another server uses the database file; two at a time would corrupt it."""

    def __init__(self, database: Path, holder: str) -> None:
        super().__init__(
            f"{database} is in use by {_holder(holder)} first, or use another state directory "
            "(--state-dir)"
        )


def _holder(server: str) -> str:
    """Return the process that holds the database, and the advice to stop it. It is the one that
    started the server, such as `temporal-plan dev`, as long as that runs."""
    named = f"the Temporal server with process id {server or 'unknown'}"
    try:
        status = Path(f"/proc/{server}/stat").read_text()
        parent = status.rpartition(")")[2].split()[1]
        words = Path(f"/proc/{parent}/cmdline").read_text().split("\0")
    except (OSError, IndexError):  # no such process, or a system without /proc
        return f"{named}; stop that server"
    command = next((i for i, word in enumerate(words) if word.endswith("temporal-plan")), None)
    if command is None:
        return f"{named}; stop that server"
    shown = " ".join(["temporal-plan", *words[command + 1 : command + 2]])  # no more: no secrets
    return f"`{shown}` with process id {parent} (its server is {server}); stop that process"


class ServerFailedError(DevServerError):
    """The server ended, or did not answer in time; the message has the end of its output."""

    def __init__(self, problem: str, log: str) -> None:
        super().__init__(f"the embedded Temporal server {problem}. Its output:\n{log or '(none)'}")
        self.log = log


class DevServer:
    """A Temporal server as an asynchronous context manager, running inside the ``async with``.

    ``database`` is a SQLite file, created when absent; without it all data is lost at the end. The
    file can be used again after any end, even ``kill -9``, by one server at a time. ``port`` and
    ``ui_port`` are free ports when absent; ``ui`` starts the web UI. ``log`` is a file to which the
    server's output is appended; without it the output is kept only for error messages.
    ``search_attributes`` map names to types (``Keyword`` ...). ``deadline`` limits the
    start, ``grace`` the end, before the server is killed, and the wait for another's database.

    Raises a ``DevServerError``, or ``ServerBinaryMissingError``.
    """

    def __init__(
        self,
        *,
        database: Path | None = None,
        ip: str = "127.0.0.1",
        port: int | None = None,
        ui: bool = False,
        ui_port: int | None = None,
        namespaces: Sequence[str] = (),
        search_attributes: Mapping[str, str] | None = None,
        dynamic_config: Mapping[str, str] | None = None,
        log: Path | None = None,
        log_level: str = "error",
        deadline: timedelta = timedelta(seconds=30),
        grace: timedelta = timedelta(seconds=10),
    ) -> None:
        self._database = database
        self._ip = ip
        self._requested_ports = {"--port": port, "--ui-port": ui_port if ui else None}
        self._ui = ui
        self._namespaces = tuple(namespaces)
        self._search_attributes = dict(search_attributes or {})
        self._dynamic_config = {**DYNAMIC_CONFIG, **(dynamic_config or {})}
        self._log = log
        self._log_level = log_level
        self._deadline = deadline
        self._grace = grace.total_seconds()
        self._resources = AsyncExitStack()
        self._process: asyncio.subprocess.Process | None = None
        self._port = 0
        self._ui_port = 0

    @property
    def address(self) -> str:
        """``host:port`` for clients."""
        return f"{self._ip}:{self._port}"

    @property
    def ui_url(self) -> str | None:
        """The address of the web UI; None without it."""
        return f"http://{self._ip}:{self._ui_port}" if self._ui else None

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running.pid

    async def wait(self) -> int:
        """Wait until the server's process ends, and return its exit code (-N for signal N)."""
        return await self._running.wait()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as resources:
            lock = await self._lock(resources)
            log = self._log or _temporary_log(resources)
            log.parent.mkdir(parents=True, exist_ok=True)
            binary = await server_binary()
            resources.push_async_callback(self._stop)
            await self._start(binary, log, lock)
            self._resources = resources.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._resources.aclose()

    @property
    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("the server runs only inside `async with DevServer(...)`")
        return self._process

    async def _lock(self, resources: AsyncExitStack) -> tuple[int, ...]:
        """Lock the database while the server runs, and return the descriptor that holds the lock.

        The server inherits the descriptor, so the lock lasts as long as the server, even if this
        process ends first. A server whose parent was just killed needs a moment to end; wait for
        it.
        """
        if self._database is None:
            return ()
        self._database.parent.mkdir(parents=True, exist_ok=True)
        path = self._database.with_name(self._database.name + ".lock")
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        resources.callback(os.close, lock)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._grace):
                while not try_lock(lock):
                    await asyncio.sleep(0.05)
                return (lock,)
        raise DatabaseInUseError(self._database, path.read_text().strip())

    async def _start(self, binary: Path, log: Path, lock: tuple[int, ...]) -> None:
        """Start the server and wait until it answers; retry if another process took a free port."""
        for attempt in range(1, _START_ATTEMPT_LIMIT + 1):
            self._choose_ports()
            output = _Log(log, start=log.stat().st_size if log.exists() else 0)
            self._process = await start_child(binary, self._arguments(), output=log, keep_open=lock)
            for descriptor in lock:
                os.pwrite(descriptor, f"{self.pid:<12}\n".encode(), 0)
            try:
                await self._wait_until_serving(output)
            except ServerFailedError as failed:
                await self._stop()
                if attempt == _START_ATTEMPT_LIMIT or _ADDRESS_IN_USE not in failed.log:
                    raise
            else:
                return

    async def _stop(self) -> None:
        if self._process is not None:
            await stop_child(self._process, grace=self._grace)

    def _choose_ports(self) -> None:
        for flag, port in self._requested_ports.items():
            if port is not None and not _is_free(self._ip, port):
                raise PortInUseError(self._ip, port, flag)
        free = iter(_free_ports(self._ip, 2))
        self._port = self._requested_ports["--port"] or next(free)
        self._ui_port = self._requested_ports["--ui-port"] or next(free)

    def _arguments(self) -> list[str]:
        return [
            *("server", "start-dev", "--ip", self._ip, "--port", str(self._port)),
            *("--log-level", self._log_level),
            *(("--ui-port", str(self._ui_port)) if self._ui else ("--headless",)),
            *_database_flags(self._database),
            *_repeated("--dynamic-config-value", _pairs(self._dynamic_config)),
            *_repeated("--search-attribute", _pairs(self._search_attributes)),
            *_repeated("--namespace", self._namespaces),
        ]

    async def _wait_until_serving(self, output: "_Log") -> None:
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                while not await self._is_serving():
                    if (code := self._running.returncode) is not None:
                        raise ServerFailedError(f"ended with code {code}", output.tail())
                    await asyncio.sleep(0.02)
        except TimeoutError:
            seconds = self._deadline.total_seconds()
            raise ServerFailedError(f"did not answer within {seconds:g} s", output.tail()) from None

    async def _is_serving(self) -> bool:
        """Return whether the frontend is healthy and has every requested namespace."""
        if not await _is_listening(self._ip, self._port):
            return False
        try:
            client = await Client.connect(self.address)
            if not await client.service_client.check_health():
                return False
            for namespace in ("default", *self._namespaces):
                await client.workflow_service.describe_namespace(
                    DescribeNamespaceRequest(namespace=namespace)
                )
        except (RPCError, RuntimeError):
            return False
        return True


class _Log:
    """One server's output in a log file, which may have earlier output of other servers."""

    def __init__(self, path: Path, start: int) -> None:
        self._path = path
        self._start = start

    def tail(self, lines: int = 20) -> str:
        with self._path.open("rb") as file:
            file.seek(self._start)
            written = file.read().decode(errors="replace").splitlines()
        return "\n".join(written[-lines:])


def _temporary_log(resources: AsyncExitStack) -> Path:
    directory = resources.enter_context(tempfile.TemporaryDirectory(prefix="temporal-plans-"))
    return Path(directory) / "server.log"


def _is_free(ip: str, port: int) -> bool:
    with socket.socket() as probe:
        # A port in TIME_WAIT, left by a server that has just ended, counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
        except OSError:
            return False
    return True


def _free_ports(ip: str, count: int) -> list[int]:
    """Return free ports. Each is held until all are found, so that they differ."""
    with ExitStack() as probes:
        ports: list[int] = []
        for _ in range(count):
            probe = probes.enter_context(socket.socket())
            probe.bind((ip, 0))
            ports.append(probe.getsockname()[1])
    return ports


async def _is_listening(ip: str, port: int) -> bool:
    """Return whether the port accepts connections. The SDK prints a warning for each refused one,
    so this is checked first."""
    try:
        _, writer = await asyncio.open_connection(ip, port)
    except OSError:
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


def _database_flags(database: Path | None) -> list[str]:
    if database is None:
        return []
    return ["--db-filename", str(database), *_repeated("--sqlite-pragma", _pairs(SQLITE_PRAGMAS))]


def _pairs(values: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


def _repeated(flag: str, values: Iterable[str]) -> list[str]:
    return [part for value in values for part in (flag, value)]


__all__ = [
    "DYNAMIC_CONFIG",
    "SQLITE_PRAGMAS",
    "DatabaseInUseError",
    "DevServer",
    "DevServerError",
    "PortInUseError",
    "ServerFailedError",
]
