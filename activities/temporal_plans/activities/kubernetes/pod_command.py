"""Commands in containers of pods: what one prints, in bytes, and its exit code.

What a command prints as errors is not asked for: it may hold what must stay secret.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from aiohttp import ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from kubernetes_asyncio.client import Configuration, CoreV1Api
from kubernetes_asyncio.stream import WsApiClient
from kubernetes_asyncio.stream.ws_client import ERROR_CHANNEL, STDOUT_CHANNEL

from temporal_plans.activities.kubernetes.errors import ClusterError
from temporal_plans.domain.packages.manifests import entries, part

_STATUS_LIMIT = 64 * 1024
"""Bytes of the answer that says how a command ended."""

_MESSAGE_LIMIT = 200
_FORBIDDEN = 403
_EXIT_CODE = re.compile(r"exit (?:status|code) (\d{1,3})\b")


class Executed(NamedTuple):
    """What a command printed, and its exit code."""

    out: bytes
    code: int


class OutputLimitError(ClusterError):
    """A command printed more than was asked for."""

    def __init__(self, subject: str, limit: int) -> None:
        super().__init__(f"{subject}: the command prints more than {limit} bytes", passing=False)


@dataclass(frozen=True, slots=True)
class Container:
    """A container of a pod."""

    namespace: str
    pod: str
    name: str

    def __str__(self) -> str:
        return f"Pod {self.pod}"


@dataclass(slots=True)
class _Streams:
    """What came so far. ``limit``: bytes of the output."""

    subject: str
    limit: int
    out: bytearray = field(default_factory=bytearray)
    status: bytearray = field(default_factory=bytearray)

    def take(self, message: bytes) -> None:
        """Add a message: the number of its stream, and then its content."""
        channel, content = message[:1], message[1:]
        if channel == bytes([STDOUT_CHANNEL]):
            self.out += content
        elif channel == bytes([ERROR_CHANNEL]):
            self.status += content
        if len(self.out) > self.limit:
            raise OutputLimitError(self.subject, self.limit)
        if len(self.status) > _STATUS_LIMIT:
            raise ClusterError(f"{self.subject}: the answer is no status", passing=True)


async def execute(
    configuration: Configuration,
    container: Container,
    command: Sequence[str],
    *,
    limit: int,
    timeout: float,
) -> Executed:
    """Run a command to its end. ``limit``: bytes of its output; ``timeout``: seconds.

    Raises OutputLimitError, or what ``errors.ANSWERS`` has, or ClusterError when the connection
    ended before the command, or when the command was not executed.
    """
    streams = _Streams(str(container), limit)
    client: Any = WsApiClient(configuration)
    async with client, asyncio.timeout(timeout):
        connect: Any = CoreV1Api(client).connect_get_namespaced_pod_exec
        opening = await connect(
            container.pod,
            container.namespace,
            container=container.name,
            command=list(command),
            stdout=True,
            _preload_content=False,
        )
        try:
            async with opening as socket:
                await _receive(socket, streams)
        except WSServerHandshakeError as error:
            problem = f"{container}: executing a command in it was refused ({error.status})"
            passing = error.status != _FORBIDDEN
            raise ClusterError(problem, passing=passing, status=error.status) from error
    return Executed(bytes(streams.out), _exit_code(str(container), bytes(streams.status)))


async def _receive(socket: ClientWebSocketResponse, streams: _Streams) -> None:
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            streams.take(message.data)


def _exit_code(subject: str, answer: bytes) -> int:
    """The exit code in a ``Status``. Kubelets give it as a cause; others have it in the text of
    the failure only. Without one the command has not run to its end."""
    try:
        parsed: Any = json.loads(answer)
    except ValueError:
        raise ClusterError(
            f"{subject}: the connection ended before the command", passing=True
        ) from None
    status = cast(Mapping[str, Any], parsed if isinstance(parsed, dict) else {})
    if status.get("status") == "Success":
        return 0
    message = str(status.get("message") or "no reason given")
    for text in (*_causes(status), message):
        if (found := _EXIT_CODE.search(text)) and int(found[1]):
            return int(found[1])
    short = message[:_MESSAGE_LIMIT]
    raise ClusterError(f"{subject}: the command was not executed: {short}", passing=True)


def _causes(status: Mapping[str, Any]) -> list[str]:
    """The exit codes among the causes of a failure, in the form that texts have."""
    return [
        f"exit code {one.get('message')}"
        for one in entries(part(status, "details"), "causes")
        if one.get("reason") == "ExitCode"
    ]
