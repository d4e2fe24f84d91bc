"""A hub behind TLS, client certificates and API keys: what is wrong is said in one line, with the
options that a spoke has for it."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from builders.tls import Authority
from temporal_plans.cli.processes.hub_options import HubError, connect_to_hub
from temporal_plans.client.temporal.connection import Connection, ConnectionSettingsError
from temporal_plans.domain.values.failure import UserFacingError

_PREFACE, _HEADER, _HEADERS = 24, 9, 1
_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"


def _text(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _frame(kind: int, flags: int, stream: bytes, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream + payload


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: str) -> None:
    """Answer every call of gRPC with a status: 16 is UNAUTHENTICATED."""
    answer = b"\x88\x00" + _text("content-type") + _text("application/grpc")
    answer += b"\x00" + _text("grpc-status") + _text(status)
    writer.write(_SETTINGS)
    await reader.readexactly(_PREFACE)
    while True:
        header = await reader.readexactly(_HEADER)
        await reader.readexactly(int.from_bytes(header[:3]))
        if header[3] == _HEADERS:
            writer.write(_frame(_HEADERS, 5, header[5:], answer))
            await writer.drain()


@asynccontextmanager
async def hub(tls: ssl.SSLContext | None = None, status: str = "16") -> AsyncGenerator[str]:
    """The address of a server that answers every call with a status."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _refuse(reader, writer, status)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


Given = Callable[[Authority, Authority, Path], dict[str, Any]]


def _trusting(ours: Authority, **more: Any) -> dict[str, Any]:
    return {"tls": True, "tls_ca_path": ours.path, **more}


def _with(ours: Authority, certificate: Path, key: Path) -> dict[str, Any]:
    return _trusting(ours, tls_cert_path=certificate, tls_key_path=key)


@dataclass(frozen=True)
class Case:
    """The options that are ``given`` (for our authority, another one, and a folder) and what is
    ``said``; ``name`` is that in the hub's certificate, ``mutual``: it wants one."""

    said: str
    given: Given
    mutual: bool = False
    name: str = "127.0.0.1"


CASES = {
    "no TLS": Case("it may want TLS (see --hub-tls)", lambda a, b, d: {}),
    "another authority": Case(
        "not trusted (see --hub-tls-ca-path, --hub-tls-server-name)", lambda a, b, d: _trusting(b)
    ),
    "no authority": Case("--hub-tls-ca-path", lambda a, b, d: {"tls": True}),
    "another name": Case(
        "--hub-tls-server-name", lambda a, b, d: _trusting(a), name="hub.example.org"
    ),
    "no client certificate": Case(
        "it may want a client certificate (see --hub-tls-cert-path, --hub-tls-key-path)",
        lambda a, b, d: _trusting(a),
        mutual=True,
    ),
    "a client certificate of another authority": Case(
        "it may not accept the client certificate (see --hub-tls-cert-path)",
        lambda a, b, d: _with(a, *b.client("other")),
        mutual=True,
    ),
    "a key of another certificate": Case(
        "certificate and key are not a pair (see --hub-tls-cert-path, --hub-tls-key-path)",
        lambda a, b, d: _with(a, a.client("x")[0], b.client("y")[1]),
        mutual=True,
    ),
    "a key that is none": Case(
        "can't be read (see --hub-tls-key-path)",
        lambda a, b, d: _with(a, a.client("x")[0], a.path),
        mutual=True,
    ),
    "a certificate without a key": Case(
        "--hub-tls-key-path: a certificate needs its key",
        lambda a, b, d: _trusting(a, tls_cert_path=a.client("x")[0]),
        mutual=True,
    ),
    "a file that is not there": Case(
        "none.pem: No such file", lambda a, b, d: {"tls": True, "tls_ca_path": d / "none.pem"}
    ),
    "an API key that is wrong": Case(
        "authentication failed (see --hub-api-key and the --hub-tls flags)",
        lambda a, b, d: _trusting(a, api_key=SecretStr("key")),
    ),
    "an API key that can't be sent": Case(
        "--hub-api-key", lambda a, b, d: _trusting(a, api_key=SecretStr("a\nb"))
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_is_wrong_is_said_with_the_options_for_it(case: str, tmp_path: Path) -> None:
    wanted = CASES[case]
    ours, other = Authority(tmp_path), Authority(tmp_path, "other")
    async with hub(ours.server(wanted.name, mutual=wanted.mutual)) as address:
        connection = Connection(address=address, **wanted.given(ours, other, tmp_path))
        with pytest.raises(UserFacingError) as raised:
            await connect_to_hub(connection, (), None)
    text = str(raised.value)
    assert isinstance(raised.value, HubError | ConnectionSettingsError)
    assert wanted.said in text
    assert "\n" not in text
    assert not any(word in text for word in ("tonic", "hyper", "Status {", " --tls", "-data"))


async def test_a_hub_without_tls_is_not_asked_for_it(tmp_path: Path) -> None:
    async with hub() as address:
        with pytest.raises(HubError, match=r"does not speak TLS \(see --hub-tls\)"):
            await connect_to_hub(Connection(address=address, tls=True), (), None)
