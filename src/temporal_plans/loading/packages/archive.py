"""Archives (.tgz) of packages, in memory: nothing of an archive is ever written to a disk."""

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Mapping

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.limits import (
    FILE_COUNT_LIMIT,
    REASON_LIMIT,
    SIZE_LIMIT,
    too_large,
    too_many,
)

_TAR_LIMIT = SIZE_LIMIT + (FILE_COUNT_LIMIT + 1) * 2048
"""Bytes of the uncompressed archive: its files, each with headers and padding."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_MODE = 0o644


def read_archive(data: bytes, source: str) -> dict[str, bytes]:
    """Return the files of a gzip-compressed tar archive by path.

    Raises SpecError with all reasons: absolute paths, paths with ``..``, links, devices, a path
    twice; more than 10 MB or 5,000 files, compressed or not; damage.
    """
    if len(data) > SIZE_LIMIT:
        raise SpecError([too_large("")], source=source)
    return read_tar(_uncompressed(data, source), source)


def read_tar(raw: bytes, source: str) -> dict[str, bytes]:
    """Return the files of a tar archive by path; see ``read_archive``."""
    files: dict[str, bytes] = {}
    problems: list[Reason] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
            _read(archive, files, problems, source)
    except (tarfile.TarError, ValueError, OSError, EOFError, RecursionError) as error:
        raise SpecError([_damage(error)], source=source) from error
    if problems:
        raise SpecError(problems[:REASON_LIMIT], source=source)
    return files


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """Return the gzip-compressed archive of files. Equal files give equal bytes by the same version
    of Python and zlib."""
    return gzip.compress(write_tar(files), mtime=0)


def write_tar(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of files. Equal files give equal bytes: sorted, without times or
    owners."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in sorted(files):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(files[path]), _MODE
            entry.uname = entry.gname = "root"
            archive.addfile(entry, io.BytesIO(files[path]))
    return raw.getvalue()


def _uncompressed(data: bytes, source: str) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            raw = stream.read(_TAR_LIMIT + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise SpecError([_damage(error)], source=source) from error
    if len(raw) > _TAR_LIMIT:
        raise SpecError([too_large("")], source=source)
    return raw


def _read(
    archive: tarfile.TarFile, files: dict[str, bytes], problems: list[Reason], source: str
) -> None:
    size = 0
    for count, entry in enumerate(archive):
        if count >= FILE_COUNT_LIMIT:
            raise SpecError([*problems[: REASON_LIMIT - 1], too_many("")], source=source)
        path = entry.name.removeprefix("./")
        if problem := _problem(entry, path, files):
            problems.append(Reason(field=path, problem=problem, fix="remove it from the archive"))
        elif not entry.isdir():
            size += entry.size
            if size > SIZE_LIMIT:
                raise SpecError([*problems[: REASON_LIMIT - 1], too_large("")], source=source)
            content = archive.extractfile(entry)
            files[path] = content.read() if content else b""


def _problem(entry: tarfile.TarInfo, path: str, files: Mapping[str, bytes]) -> str | None:
    """Return why an entry is refused; None for a directory or a file inside the archive."""
    if entry.isdir() and path in ("", "."):
        return None
    if not path or path.startswith("/") or "\\" in path or _CONTROL.search(path):
        return "is not a relative path"
    if ".." in path.split("/"):
        return "leaves the package"
    if entry.issym() or entry.islnk():
        return "is a link"
    if entry.isdir():
        return None
    if not entry.isreg() or entry.issparse():
        return "is neither a file nor a folder"
    return "is in the archive twice" if path in files else None


def _damage(error: BaseException) -> Reason:
    detail = " ".join(str(error).split()) or type(error).__name__
    return Reason(
        field="", problem=f"is not a .tgz archive: {detail}", fix="make it with package pack"
    )
