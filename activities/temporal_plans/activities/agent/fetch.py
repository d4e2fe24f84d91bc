"""Getting a pod's ``uris`` into a sandbox.

``file://`` uris, plain paths and ``http(s)://`` are understood. Archives are extracted, everything
else is copied under its own name; a file that is executable stays so.
"""

import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import IO

from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.task import TaskState

_CHUNK = 1024 * 1024
_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ZIP_ENDINGS = (".zip",)


class Fetcher:
    """Fetches uris. Its methods block: call them in a thread, and ``stop`` from anywhere.

    ``progress`` gets a short text from time to time, for the activity's heartbeat. ``timeout`` is
    how long, in seconds, a server may say nothing.
    """

    def __init__(self, timeout: float, progress: Callable[[str], None]) -> None:
        self._timeout = timeout
        self._progress = progress
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Makes a running ``fetch`` end soon, with TaskRefused."""
        self._stopped.set()

    def fetch(self, uri: str, sandbox: Path) -> None:
        """Puts what a uri names into the sandbox; TaskRefused (FAILED) when that doesn't work."""
        shown = without_secrets(uri)
        try:
            name = file_name(uri)
            target = sandbox / name
            if target.is_symlink() or target.exists():
                raise TaskRefused(f"uris: {shown}: the sandbox has a {name!r} already")
            self._copy(uri, shown, target)
            self._extract(target, sandbox)
        except TaskRefused:
            raise
        except (
            OSError,
            EOFError,
            ValueError,
            HTTPException,
            tarfile.TarError,
            zipfile.BadZipFile,
            NotImplementedError,  # a zip of an unknown method
        ) as problem:
            raise TaskRefused(f"uris: {shown}: {_reason(problem)}", TaskState.FAILED) from None

    def _copy(self, uri: str, shown: str, target: Path) -> None:
        path = local_path(uri)
        if path is not None:
            with path.open("rb") as source, target.open("xb") as sink:
                self._pump(source, sink, shown)
            if path.stat().st_mode & 0o111:
                target.chmod(0o755)
            return
        request = urllib.request.Request(uri, headers={"User-Agent": "temporal-plans-agent"})
        with urllib.request.urlopen(request, timeout=self._timeout) as answer:
            expected = answer.headers.get("Content-Length")
            with target.open("xb") as sink:
                size = self._pump(answer, sink, shown)
        if expected is not None and size != int(expected):
            raise OSError(f"broke off after {size} of {expected} bytes")

    def _pump(self, source: IO[bytes], sink: IO[bytes], shown: str) -> int:
        size = 0
        while chunk := source.read(_CHUNK):
            if self._stopped.is_set():
                raise TaskRefused(f"uris: {shown}: was stopped", TaskState.FAILED)
            sink.write(chunk)
            size += len(chunk)
            self._progress(f"fetching {shown}: {size} bytes")
        return size

    def _extract(self, archive: Path, sandbox: Path) -> None:
        name = archive.name.lower()
        if name.endswith(_TAR_ENDINGS):
            self._progress(f"extracting {archive.name}")
            with tarfile.open(archive) as tar:
                if not hasattr(tarfile, "data_filter"):
                    raise TaskRefused("uris: extracting a tar safely needs Python 3.11.4 or newer")
                tar.extractall(sandbox, filter="data")
            archive.unlink()
        elif name.endswith(_ZIP_ENDINGS):
            self._progress(f"extracting {archive.name}")
            with zipfile.ZipFile(archive) as packed:
                for member in packed.infolist():
                    path = Path(packed.extract(member, sandbox))
                    if not member.is_dir() and member.external_attr >> 16 & 0o111:
                        path.chmod(0o755)
            archive.unlink()


def local_path(uri: str) -> Path | None:
    """The file that a ``file://`` uri or a plain path names; None for a uri of the web.

    ValueError for any other kind of uri.
    """
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme in ("http", "https"):
        return None
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(urllib.parse.unquote(parts.path))
    if parts.scheme:
        raise ValueError("is neither a path nor a file:, http: or https: uri")
    if not Path(uri).is_absolute():
        raise ValueError("is a relative path; relative to what is not known: make it absolute")
    return Path(uri)


def file_name(uri: str) -> str:
    """The name that a fetched file gets: the last part of its path. ValueError without one."""
    path = local_path(uri)
    text = urllib.parse.unquote(urllib.parse.urlsplit(uri).path) if path is None else str(path)
    name = text.rstrip("/").rpartition("/")[2]
    if name in ("", ".", ".."):
        raise ValueError("names no file")
    return name


def without_secrets(uri: str) -> str:
    """A uri without its user, password and query, which may hold what isn't for a log."""
    parts = urllib.parse.urlsplit(uri)
    if not parts.netloc:
        return uri
    host = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))


def _reason(problem: BaseException) -> str:
    if isinstance(problem, urllib.error.HTTPError):
        problem.close()
        return f"the server answered {problem.code} {problem.reason}"
    if isinstance(problem, urllib.error.URLError):
        return f"could not be reached: {problem.reason}"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return str(problem).partition("\n")[0].rstrip(":") or type(problem).__name__
