"""Fetches a pod's ``uris`` into a sandbox.

``file://`` uris, plain paths and ``http(s)://`` are supported. Archives are extracted, other files
are copied under their own names and keep their executable bit. A program of its own does it, as the
task's user (``fetch_program``).
"""

import json
import os
import subprocess
import sys
import threading
import urllib.parse
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox.fetch_program import FetchOrder
from temporal_plans.activities.agent.sandbox.identity import Identity
from temporal_plans.activities.mechanics.redaction import Redactor
from temporal_plans.domain.tasks.statuses import TaskState
from temporal_plans.domain.values.refusal import Reason

_LINE_LIMIT = 64 * 1024
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from temporal_plans.activities.agent.sandbox.fetch_program import main; main()"
)

_VARIABLES = ("no_proxy", "http_proxy", "https_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""Variables of the agent that matter for downloads; those of proxies in either case."""


class FetchLimits(NamedTuple):
    """``timeout``: how many seconds a server may send nothing. ``size``: bytes of one uri, also
    when extracted. ``members``: of one archive."""

    timeout: float
    size: int = 20 * 1024 * 1024 * 1024
    members: int = 1_000_000


class Fetcher:
    """Fetches uris. Its methods block: call them in a thread, and ``stop`` from any thread.

    ``progress`` receives a short text from time to time, for the activity's heartbeat. ``identity``
    is the user that reads and writes; None: the agent's own.
    """

    def __init__(
        self,
        limits: FetchLimits,
        progress: Callable[[str], None],
        identity: Identity | None = None,
    ) -> None:
        self._limits = limits
        self._progress = progress
        self._identity = identity
        self._lock = threading.Lock()
        self._stopped = False
        self.program: subprocess.Popen[bytes] | None = None
        """the newest program"""

    def stop(self) -> None:
        """Make a running ``fetch`` end soon, with TaskRefused."""
        with self._lock:
            self._stopped = True
            if self.program is not None:
                self.program.kill()

    def fetch(self, uri: str, sandbox: Path) -> None:
        """Fetch a uri into the sandbox. Raises TaskRefused."""
        shown = redacted_uri(uri)
        try:
            if "\0" in urllib.parse.unquote(uri):
                raise ValueError("contains a zero byte")
            name = file_name(uri)
            path = local_path(uri)
        except ValueError as problem:
            raise _failed(f"{shown}: {problem}") from None
        if os.path.lexists(sandbox / name):
            raise TaskRefused(
                Reason(
                    field="uris",
                    problem=f"{shown}: the sandbox already has a {name!r}",
                    fix="rename one",
                )
            )
        order = FetchOrder(
            uri=uri,
            path=None if path is None else str(path),
            name=name,
            sandbox=str(sandbox),
            timeout=self._limits.timeout,
            size_limit=self._limits.size,
            members_limit=self._limits.members,
            user=self._user(),
        )
        error = self._execute(order, shown)
        if self._stopped:
            raise _failed(f"{shown}: the download was cancelled")
        if error is not None:
            text = _secrets_of(uri).text(error) + self._reader_note(order)
            raise _failed(f"{shown}: {text}")

    def _reader_note(self, order: FetchOrder) -> str:
        if order.path is None or order.user is None or self._identity is None:
            return ""
        return f"; it is read as the task's user, {self._identity.name}"

    def _user(self) -> tuple[int, int, list[int]] | None:
        if self._identity is None or self._identity.uid == os.geteuid():
            return None
        return self._identity.uid, self._identity.gid, list(self._identity.groups)

    def _execute(self, order: FetchOrder, shown: str) -> str | None:
        """Return the program's error, if any. The program ends with its standard input, so also
        with the agent."""
        with self._lock:
            if self._stopped:
                return None
            program = self.program = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, *sys.path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                cwd="/",
                start_new_session=True,
            )
        assert program.stdin is not None
        assert program.stdout is not None
        with program, program.stdin:
            try:
                with suppress(BrokenPipeError):
                    program.stdin.write(json.dumps(order).encode() + b"\n")
                    program.stdin.flush()
                return self._read(program.stdout, shown)
            finally:
                program.kill()

    def _read(self, output: IO[bytes], shown: str) -> str | None:
        while line := output.readline(_LINE_LIMIT):
            try:
                message: dict[str, Any] = json.loads(line)
            except ValueError:
                break
            if "error" in message:
                return None if message["error"] is None else str(message["error"])
            self._progress(f"fetching {shown}: {message.get('progress', '')}")
        return "the program that fetches it ended without an answer"


def _failed(problem: str) -> TaskRefused:
    return TaskRefused(Reason(field="uris", problem=problem), state=TaskState.FAILED)


def _secrets_of(uri: str) -> Redactor:
    """Return a redactor of the parts that ``redacted_uri`` leaves out."""
    parts = urllib.parse.urlsplit(uri)
    user = parts.netloc.rpartition("@")[0]
    return Redactor(os.fsencode(part) for part in (user, parts.query, parts.fragment))


def _environment() -> dict[str, str]:
    known = {*_VARIABLES, *(name.upper() for name in _VARIABLES)}
    return {name: value for name, value in os.environ.items() if name in known}


def local_path(uri: str) -> Path | None:
    """Return the file of a ``file://`` uri or a plain path; None for an http or https uri.

    Raises ValueError for any other uri.
    """
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme in ("http", "https"):
        return None
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(urllib.parse.unquote(parts.path))
    if parts.scheme:
        raise ValueError("unsupported uri; write an absolute path or a file:, http: or https: uri")
    if not Path(uri).is_absolute():
        raise ValueError("relative path; write an absolute path")
    return Path(uri)


def file_name(uri: str) -> str:
    """Return the name of a fetched file, the last part of its path. Raises ValueError."""
    path = local_path(uri)
    text = urllib.parse.unquote(urllib.parse.urlsplit(uri).path) if path is None else str(path)
    name = text.rstrip("/").rpartition("/")[2]
    if name in ("", ".", ".."):
        raise ValueError("the path has no file name")
    return name


def redacted_uri(uri: str) -> str:
    """Return a uri without its user, password and query, which may contain secrets."""
    parts = urllib.parse.urlsplit(uri)
    if not parts.netloc:
        return uri
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))
