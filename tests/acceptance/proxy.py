"""A network between a process and the Temporal server that misbehaves when it is told to."""

import asyncio
import socket
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from temporal_plans.worker.ports import free_port

_CHUNK = 65536
_QUEUE_LIMIT = 1000
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: a close sends RST."""


@dataclass(eq=False)
class _Link:
    """A connection through the proxy. ``dead``: what is sent through it is swallowed, and nobody is
    told: a half-open connection, as when a router has forgotten it."""

    ends: tuple[asyncio.StreamWriter, ...]
    dead: bool = False
    jobs: list["asyncio.Task[None]"] = field(default_factory=list["asyncio.Task[None]"])


class Proxy:
    """Passes TCP connections on to ``upstream`` (a port of 127.0.0.1)."""

    def __init__(self, upstream: int, *, tls: ssl.SSLContext | None = None) -> None:
        """With ``tls`` it is the end of TLS: ``upstream`` gets plain bytes."""
        self._upstream = upstream
        self._tls = tls
        self.port = free_port()
        self.delay = 0.0
        """seconds by which everything is late, in each direction"""
        self._flows = asyncio.Event()
        self._flows.set()
        self._refuses = False
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", self.port, ssl=self._tls
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        while self._links:
            for job in [job for link in self._links for job in link.jobs]:
                job.cancel()
            await asyncio.sleep(0.01)

    # --- harm ---

    def stall(self) -> None:
        """Nothing arrives, until ``flow``; then all of it does."""
        self._flows.clear()

    def cut(self) -> None:
        """Reset all connections, and every new one, until ``flow``."""
        self._refuses = True
        self.reset()

    def flow(self) -> None:
        """Pass everything on at once, as at first."""
        self.delay = 0.0
        self._refuses = False
        self._flows.set()

    def reset(self) -> None:
        """Reset all connections."""
        for link in self._links:
            for end in link.ends:
                _reset(end)

    def half_open(self) -> None:
        """Swallow what is sent through the connections that there are; new ones work."""
        for link in self._links:
            link.dead = True

    # --- what it does ---

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            _reset(writer)
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            _reset(writer)
            return
        link = _Link((writer, up_writer))
        self._links.add(link)
        link.jobs = [
            asyncio.create_task(self._pass_on(link, reader, up_writer)),
            asyncio.create_task(self._pass_on(link, up_reader, writer)),
        ]
        try:
            await asyncio.wait(link.jobs, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for job in link.jobs:
                job.cancel()
            await asyncio.gather(*link.jobs, return_exceptions=True)
            for end in link.ends:
                end.close()
            self._links.discard(link)

    async def _pass_on(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        loop = asyncio.get_running_loop()
        queue = asyncio.Queue[tuple[float, bytes]](_QUEUE_LIMIT)

        async def take() -> None:
            chunk = b"first"
            while chunk:
                try:
                    chunk = await reader.read(_CHUNK)
                except OSError:  # the connection was reset
                    chunk = b""
                await queue.put((loop.time() + self.delay, chunk))

        taking = asyncio.create_task(take())
        try:
            while True:
                due, chunk = await queue.get()
                await asyncio.sleep(max(due - loop.time(), 0.0))
                await self._flows.wait()
                if not chunk:
                    return
                if not link.dead:
                    writer.write(chunk)
                    await writer.drain()
        except OSError:
            return
        finally:
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    plug = writer.get_extra_info("socket")
    with suppress(OSError):
        if plug is not None:
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
