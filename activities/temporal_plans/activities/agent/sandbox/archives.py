"""Extracts archives. What an archive contains is as hostile as what a task writes.

Names, links, modes and sizes of members are checked here, not by ``tarfile``, whose own filter can
be led outside in Python before 3.11.13, 3.12.11 and 3.13.4 (CVE-2025-4517). Files are created below
descriptors (``beneath``).

This module needs the standard library only (``fetch_program``).
"""

import errno
import os
import stat
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from temporal_plans.activities.agent.sandbox.beneath import Folder, LeadsOutside

_TAR_ENDINGS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_ZIP_ENDINGS = (".zip",)
_CHUNK_SIZE = 1024 * 1024
_PROGRESS_INTERVAL = 1000  # members


class ArchiveRefused(Exception):
    """An archive has a member that is not extracted; the text names it."""


class Budget:
    """How many members and bytes an archive may still have."""

    def __init__(self, members: int, size: int) -> None:
        self._limits = members, size
        self._members = members
        self._size = size

    def take_member(self) -> None:
        self._members -= 1
        if self._members < 0:
            raise ArchiveRefused(
                f"has more than {self._limits[0]} members, which is the agent's limit"
            )

    def take_bytes(self, count: int) -> None:
        self._size -= count
        if self._size < 0:
            raise ArchiveRefused(
                f"has more than {self._limits[1] // 1024 // 1024} MB, which is the agent's limit"
            )

    @property
    def taken(self) -> int:
        """The number of members that were taken."""
        return self._limits[0] - self._members


Progress = Callable[[str], None]


def is_archive(name: str) -> bool:
    """Return whether a file of that name is extracted."""
    return name.lower().endswith((*_TAR_ENDINGS, *_ZIP_ENDINGS))


def extract(file: IO[bytes], name: str, into: Folder, budget: Budget, progress: Progress) -> None:
    """Extract an archive into a directory. Raises ArchiveRefused, OSError and the errors of
    ``tarfile`` and ``zipfile``."""
    if name.lower().endswith(_ZIP_ENDINGS):
        _extract_zip(file, into, budget, progress)
    else:
        _extract_tar(file, into, budget, progress)


def _extract_tar(file: IO[bytes], into: Folder, budget: Budget, progress: Progress) -> None:
    with tarfile.open(fileobj=file) as tar:
        while (member := tar.next()) is not None:
            _note_progress(budget, progress)
            _extract_member(tar, member, into, budget)
            tar.members.clear()  # type: ignore[attr-defined]  # millions of them need no memory


def _extract_member(
    tar: tarfile.TarFile, member: tarfile.TarInfo, into: Folder, budget: Budget
) -> None:
    parts = _parts(member.name)
    if member.isdir():
        into.folder(parts, create=True).close()
    elif not parts:
        raise ArchiveRefused(f"{member.name!r} has no name")
    elif member.issym():
        _check_link(member, parts)
        with into.folder(parts[:-1], create=True) as folder:
            folder.remove_file(parts[-1])
            folder.create_link(parts[-1], member.linkname)
    elif member.islnk():
        source = _parts(member.linkname)
        if not source:
            raise ArchiveRefused(f"{member.name!r} is a link to {member.linkname!r}")
        with (
            into.folder(source[:-1]) as source_folder,
            into.folder(parts[:-1], create=True) as folder,
        ):
            source_folder.link_file(source[-1], folder, parts[-1])
    elif member.isreg():
        content = tar.extractfile(member)
        assert content is not None
        with content:
            _write(content, into, parts, member.mode, budget, member.mtime)
    else:
        raise ArchiveRefused(f"{member.name!r} is a device or FIFO; remove it from the archive")


def _check_link(member: tarfile.TarInfo, parts: list[str]) -> None:
    """Refuse a link that points out of the directory, by its text. Nothing is ever written through
    one that does so by way of other links (``beneath``)."""
    joined = os.path.normpath("/".join([*parts[:-1], member.linkname]))
    if member.linkname.startswith("/") or joined.split("/")[0] == "..":
        raise ArchiveRefused(
            f"{member.name!r} is a link to {member.linkname!r}, outside the destination"
        )


def _extract_zip(file: IO[bytes], into: Folder, budget: Budget, progress: Progress) -> None:
    with zipfile.ZipFile(file) as packed:
        for member in packed.infolist():
            _note_progress(budget, progress)
            parts = _parts(member.filename)
            if member.is_dir():
                into.folder(parts, create=True).close()
            elif parts:
                with packed.open(member) as content:
                    _write(content, into, parts, member.external_attr >> 16, budget)


def _write(
    content: IO[bytes],
    into: Folder,
    parts: list[str],
    mode: int,
    budget: Budget,
    mtime: float | None = None,
) -> None:
    """Write a file: its owner may read and write it, others may not write it, and it is executable
    if it is for its owner. A mode of 0 stands for none."""
    rights = (mode or 0o644) & 0o755 | 0o600
    if not rights & stat.S_IXUSR:
        rights &= 0o666
    with (
        into.folder(parts[:-1], create=True) as folder,
        folder.create_file(parts[-1], mode=rights) as file,
    ):
        while chunk := content.read(_CHUNK_SIZE):
            budget.take_bytes(len(chunk))
            file.write(chunk)
        file.flush()
        if mtime is not None:
            with suppress(OverflowError, ValueError):  # a time that no file can have
                os.utime(file.fileno(), (mtime, mtime))


def _parts(name: str) -> list[str]:
    """Return the path of a member. An absolute one is meant from the destination, as by ``tar``."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ArchiveRefused(f"{name!r} would be extracted outside the destination")
    if "\0" in name:
        raise ArchiveRefused(f"{name!r} has a zero byte in its name")
    return parts


def _note_progress(budget: Budget, progress: Progress) -> None:
    budget.take_member()
    if budget.taken % _PROGRESS_INTERVAL == 0:
        progress(f"{budget.taken} members")


def outside_text(problem: OSError) -> str | None:
    """Return the text for a member that leads outside through a link of the archive."""
    if isinstance(problem, LeadsOutside) or problem.errno == errno.EXDEV:
        return f"{problem.filename!r} would be extracted outside the destination, through a link"
    return None
