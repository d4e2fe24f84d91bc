"""The program that fetches one uri into a sandbox, as the task's user: the user reads what it may
read, and writes what it may write. The agent starts it for each uri (``fetch``).

It reads one line of JSON, a ``FetchOrder``, and prints lines of JSON: ``progress``, and at the end
``error`` (a text, or null). It ends when its standard input is closed.

It needs the standard library only, and imports everything before it changes its user, who may not
be able to read the agent's Python.
"""

import bz2
import encodings.cp437
import encodings.idna
import encodings.latin_1
import gzip
import json
import lzma
import os
import resource
import ssl
import stat
import sys
import threading
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import IO, Any, NamedTuple

from temporal_plans.activities.agent.sandbox.archives import (
    Budget,
    extract,
    is_archive,
    outside_text,
)
from temporal_plans.activities.agent.sandbox.beneath import Folder

_IMPORTED = (bz2, encodings.cp437, encodings.idna, encodings.latin_1, gzip, lzma, zlib)

_CHUNK_SIZE = 1024 * 1024
_MEMORY_LIMIT = 1024 * 1024 * 1024
"""Bytes of address space: the headers of an archive may ask for any amount."""

_SYSTEM_DIRECTORIES = ("/proc", "/sys", "/dev")


class FetchOrder(NamedTuple):
    """``path`` is that of a local file, or None. ``user``: the uid, gid and groups to change to."""

    uri: str
    path: str | None
    name: str
    sandbox: str
    timeout: float
    size_limit: int
    members_limit: int
    user: tuple[int, int, list[int]] | None


class FetchFailed(Exception):
    """The uri can't be fetched; the text says why."""


def main() -> None:
    """Execute the order on standard input."""
    order = FetchOrder(*json.loads(sys.stdin.buffer.readline()))
    try:
        with Folder.open(Path(order.sandbox)) as into:
            tls = ssl.create_default_context() if order.path is None else None
            _limit(order)
            _become(order)
            threading.Thread(target=_end_with_agent, daemon=True).start()
            _fetch(order, into, tls)
    except Exception as problem:
        _print(error=_reason(problem))
    else:
        _print(error=None)
    sys.stdout.flush()
    os._exit(0)


def _limit(order: FetchOrder) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_LIMIT, _MEMORY_LIMIT))


def _become(order: FetchOrder) -> None:
    if order.user is not None:
        uid, gid, groups = order.user
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    os.umask(0o022)
    os.chdir("/")


def _end_with_agent() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _fetch(order: FetchOrder, into: Folder, tls: ssl.SSLContext | None) -> None:
    if order.path is None:
        _download(order, into, tls)
        if is_archive(order.name):
            with into.open_file(order.name) as archive:
                _extract(order, archive, into)
            into.remove_file(order.name)
    else:
        with open_source(order.path) as source:
            if is_archive(order.name):
                _extract(order, source, into)
            else:
                _copy_local(order, source, into)


def _copy_local(order: FetchOrder, source: IO[bytes], into: Folder) -> None:
    executable = os.fstat(source.fileno()).st_mode & 0o111
    with into.create_file(order.name, mode=0o755 if executable else 0o644) as sink:
        _copy(order, source, sink)


def _download(order: FetchOrder, into: Folder, tls: ssl.SSLContext | None) -> None:
    request = urllib.request.Request(order.uri, headers={"User-Agent": "temporal-plans-agent"})
    with urllib.request.urlopen(request, timeout=order.timeout, context=tls) as answer:
        expected = answer.headers.get("Content-Length")
        with into.create_file(order.name, mode=0o644) as sink:
            size = _copy(order, answer, sink)
    if expected is not None and size != int(expected):
        raise FetchFailed(f"the download ended after {size} of {expected} bytes")


def _copy(order: FetchOrder, source: IO[bytes], sink: IO[bytes]) -> int:
    size = 0
    while chunk := source.read(_CHUNK_SIZE):
        size += len(chunk)
        if size > order.size_limit:
            limit = order.size_limit // 1024 // 1024
            raise FetchFailed(f"has more than {limit} MB, which is the agent's limit")
        sink.write(chunk)
        _print(progress=f"{size} bytes")
    return size


def _extract(order: FetchOrder, archive: IO[bytes], into: Folder) -> None:
    budget = Budget(order.members_limit, order.size_limit)
    extract(archive, order.name, into, budget, lambda text: _print(progress=text))


def open_source(path: str) -> IO[bytes]:
    """Open a regular file of the machine. Raises FetchFailed and OSError.

    Those below ``/proc``, ``/sys`` and ``/dev`` are refused: they show this process, not the task.
    """
    _check_place(os.path.realpath(path))
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        _check_place(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FetchFailed("is no regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def _check_place(path: str) -> None:
    if any(f"{path}/".startswith(f"{directory}/") for directory in _SYSTEM_DIRECTORIES):
        raise FetchFailed(f"nothing below {', '.join(_SYSTEM_DIRECTORIES)} is fetched")


def _print(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _reason(problem: Exception) -> str:
    if isinstance(problem, urllib.error.HTTPError):
        problem.close()
        return f"the server answered {problem.code} {problem.reason}"
    if isinstance(problem, urllib.error.URLError):
        return f"could not be reached: {problem.reason}"
    if isinstance(problem, MemoryError):
        return "needs more memory than the agent allows"
    if isinstance(problem, OSError):
        return outside_text(problem) or problem.strerror or str(problem) or type(problem).__name__
    return str(problem).partition("\n")[0].rstrip(":") or type(problem).__name__
