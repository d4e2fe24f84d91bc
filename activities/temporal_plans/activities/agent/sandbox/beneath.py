"""Opens what is below a directory that tasks may write to, by descriptor.

A task may replace anything in its sandbox and volumes at any moment: a file by a link, a FIFO or a
device, a directory by a link. So no path is used twice here. Each component is opened below the
descriptor of the one before, without following links and without waiting, and only regular files
are read and written. Links are resolved by hand, and only within the first directory.

This module needs the standard library only: programs that change to the task's user use it, too.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, NamedTuple

_COMMON = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | _COMMON

_DEPTH_LIMIT = 128
_LINKS_LIMIT = 40


class NotRegular(OSError):
    """A file is not a regular one; ``strerror`` says what it is."""

    def __init__(self, name: str, mode: int) -> None:
        super().__init__(errno.EINVAL, f"is no regular file ({_kind(mode)})", name)


class LeadsOutside(OSError):
    """A path leads out of the first directory, through a link or ``..``."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EXDEV, "leads outside of its directory", path)


class Owner(NamedTuple):
    """The numeric user and group of a new file."""

    uid: int
    gid: int


class Folder:
    """An open directory. Close it, or use it as a context manager."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    @classmethod
    def open(cls, path: Path) -> "Folder":
        """Open a directory whose parents only the agent can write to; it is no link itself."""
        return cls(os.open(path, DIRECTORY_FLAGS))

    def close(self) -> None:
        os.close(self.descriptor)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def folder(
        self, parts: Sequence[str], *, create: bool = False, owner: Owner | None = None
    ) -> "Folder":
        """Open a directory below this one. With ``create``, create the missing directories.

        Raises LeadsOutside and other OSError.
        """
        stack = [os.dup(self.descriptor)]
        try:
            self._descend(stack, parts, create=create, owner=owner)
            return Folder(stack.pop())
        finally:
            for descriptor in stack:
                os.close(descriptor)

    def _descend(
        self, stack: list[int], parts: Sequence[str], *, create: bool, owner: Owner | None
    ) -> None:
        shown = "/".join(parts)
        waiting, links = deque(parts), 0
        while waiting:
            part = waiting.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                if len(stack) == 1:
                    raise LeadsOutside(shown)
                os.close(stack.pop())
                continue
            if len(stack) > _DEPTH_LIMIT:
                raise OSError(errno.ENAMETOOLONG, "has too many directories", shown)
            try:
                stack.append(_open_directory(part, stack[-1], create=create, owner=owner))
            except NotADirectoryError:
                target, links = _link_target(part, stack[-1]), links + 1
                if target.startswith("/"):
                    raise LeadsOutside(shown) from None
                if links > _LINKS_LIMIT:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), shown) from None
                waiting.extendleft(reversed(target.split("/")))

    def open_file(self, name: str) -> BinaryIO:
        """Open a regular file directly in this directory for reading. Raises OSError."""
        try:
            descriptor = os.open(name, os.O_RDONLY | _COMMON, dir_fd=self.descriptor)
        except OSError as problem:
            if problem.errno not in (errno.ELOOP, errno.ENXIO):  # a link, a socket
                raise
            mode = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False).st_mode
            raise NotRegular(name, mode) from None
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise NotRegular(name, mode)
        return os.fdopen(descriptor, "rb")

    def create_file(self, name: str, *, mode: int = 0o600, owner: Owner | None = None) -> BinaryIO:
        """Create a file directly in this directory, in place of whatever has that name, unless it
        is a directory. Raises OSError."""
        self.remove_file(name)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _COMMON
        descriptor = os.open(name, flags, 0o600, dir_fd=self.descriptor)
        try:
            if owner is not None:
                os.fchown(descriptor, *owner)
            os.fchmod(descriptor, mode)
        except OSError:
            os.close(descriptor)
            raise
        return os.fdopen(descriptor, "wb")

    def remove_file(self, name: str) -> None:
        """Delete what has that name directly in this directory, if anything; no directory."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def link_file(self, name: str, into: "Folder", new_name: str) -> None:
        """Give a file another name, in place of what has it. Raises OSError."""
        into.remove_file(new_name)
        os.link(
            name,
            new_name,
            src_dir_fd=self.descriptor,
            dst_dir_fd=into.descriptor,
            follow_symlinks=False,
        )

    def create_link(self, name: str, target: str, owner: Owner | None = None) -> None:
        """Create a symbolic link directly in this directory. Raises OSError."""
        os.symlink(target, name, dir_fd=self.descriptor)
        if owner is not None:
            os.chown(name, *owner, follow_symlinks=False, dir_fd=self.descriptor)

    def give_entries(self, owner: Owner) -> None:
        """Give the files directly in this directory that belong to this process to an owner; never
        a file that another directory has, too. Raises OSError."""
        for name in os.listdir(self.descriptor):
            try:
                entry = os.open(
                    name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.descriptor
                )
            except FileNotFoundError:
                continue
            try:
                found = os.fstat(entry)
                if (
                    found.st_uid == os.geteuid()
                    and stat.S_ISREG(found.st_mode)
                    and found.st_nlink == 1
                ):
                    os.chown(f"/proc/self/fd/{entry}", *owner)
            finally:
                os.close(entry)

    @property
    def path(self) -> str:
        """The directory's present path."""
        return os.readlink(f"/proc/self/fd/{self.descriptor}")


def open_file(path: Path) -> BinaryIO:
    """Open a regular file of the agent's own directories for reading. Raises OSError."""
    with Folder(os.open(path.parent, DIRECTORY_FLAGS & ~os.O_NOFOLLOW)) as folder:
        return folder.open_file(path.name)


def make_directory(path: Path, mode: int, owner: Owner | None) -> None:
    """Create a directory if it is missing, and give it to its owner. Raises OSError.

    Only the agent can write to its parents.
    """
    try:
        path.mkdir(mode=0o700)
        new = True
    except FileExistsError:
        new = False
    with Folder.open(path) as folder:
        if new:
            os.fchmod(folder.descriptor, mode)
        if owner is not None and os.fstat(folder.descriptor).st_uid != owner.uid:
            os.fchown(folder.descriptor, *owner)


def _open_directory(name: str, parent: int, *, create: bool, owner: Owner | None) -> int:
    try:
        return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    os.mkdir(name, 0o755, dir_fd=parent)
    descriptor = os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
    if owner is not None and os.fstat(descriptor).st_uid == os.geteuid():
        os.fchown(descriptor, *owner)
    return descriptor


def _link_target(name: str, parent: int) -> str:
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from None


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a directory",
        stat.S_IFIFO: "a FIFO",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
        stat.S_IFSOCK: "a socket",
        stat.S_IFLNK: "a link",
    }
    return kinds.get(stat.S_IFMT(mode), "of unknown kind")
