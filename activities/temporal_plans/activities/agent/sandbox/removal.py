"""Deletes directory trees that tasks may write to.

A task may nest directories deeper than any stack or path is, forbid their reading, and replace
them by links or FIFOs meanwhile. So nothing is deleted by its path: directories are opened without
following links and moved to the top of the tree, where their content is deleted; two are open at a
time.
"""

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from temporal_plans.activities.agent.sandbox.beneath import DIRECTORY_FLAGS

_ROUNDS_LIMIT = 100
"""How often a directory is read again that processes fill while it is deleted."""


def remove_tree(path: Path) -> None:
    """Delete a directory tree, a file or a link, if it exists. Raises OSError.

    Only the agent can write to the parents of ``path``.
    """
    with suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        top = _open(str(path), None)
        try:
            with suppress(PermissionError):  # no other user reaches its entries by their paths then
                os.fchown(top, os.geteuid(), os.getegid())
            os.fchmod(top, 0o700)
            _empty(top)
        finally:
            os.close(top)
        path.rmdir()


def _empty(top: int) -> None:
    for _ in range(_ROUNDS_LIMIT):
        names = os.listdir(top)
        if not names:
            return
        while names:
            names += _remove(names.pop(), top)
    raise OSError(errno.ENOTEMPTY, "is filled while it is deleted", _path_of(top))


def _remove(name: str, top: int) -> list[str]:
    """Delete an entry of the top. Directories in it become entries of the top, and are returned."""
    with suppress(FileNotFoundError):
        try:
            folder = _open(name, top)
        except NotADirectoryError:
            os.unlink(name, dir_fd=top)
            return []
        try:
            moved = [entry for entry in os.listdir(folder) if not _unlinked(entry, folder)]
            found = [_moved(entry, folder, top) for entry in moved]
        finally:
            os.close(folder)
        try:
            os.rmdir(name, dir_fd=top)
        except OSError as problem:
            if problem.errno != errno.ENOTEMPTY:  # the next round deletes the rest
                raise
        return found
    return []


def _unlinked(entry: str, folder: int) -> bool:
    """Delete an entry, unless it is a directory."""
    try:
        os.unlink(entry, dir_fd=folder)
    except FileNotFoundError:
        return True
    except IsADirectoryError:
        return False
    return True


def _moved(entry: str, folder: int, top: int) -> str:
    """Move a directory to the top; return its new name."""
    with suppress(OSError):  # a directory that can't be written to can't be moved
        os.close(_open(entry, folder))
    name = uuid4().hex
    with suppress(FileNotFoundError):
        os.rename(entry, name, src_dir_fd=folder, dst_dir_fd=top)
    return name


def _open(name: str, parent: int | None) -> int:
    """Open a directory, after giving this process every right to it. Raises NotADirectoryError."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if os.fstat(found).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{found}", 0o700)
        return os.open(".", DIRECTORY_FLAGS, dir_fd=found)
    finally:
        os.close(found)


def _path_of(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")
