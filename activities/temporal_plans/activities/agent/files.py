"""Files that are either whole or not there."""

import contextlib
import logging
import os
import shutil
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from temporal_plans.domain.model import Value

_log = logging.getLogger(__name__)

V = TypeVar("V", bound=Value)


def write_atomic(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replaces a file in one step, on disk before this returns. OSError when that fails."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_value(path: Path, value: Value) -> None:
    write_atomic(path, value.model_dump_json().encode())


def read_value(path: Path, kind: type[V]) -> V | None:
    """The value in a file; None when there is no file, or none that can be understood.

    Half a file can't be there; one that a disk fault or a person broke is logged, not fatal.
    """
    try:
        return kind.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        _log.warning("%s can't be read and is ignored", path)
        return None


def remove_tree(path: Path) -> None:
    """Deletes a directory or a link, and what is in it; what is not there is fine."""
    if path.is_symlink():
        path.unlink(missing_ok=True)
        return
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(path)


def give_away(root: Path, uid: int, gid: int) -> None:
    """Makes a tree somebody's own. Links are given away themselves, never followed."""
    os.lchown(root, uid, gid)
    for directory, folders, files in os.walk(root):
        for name in (*folders, *files):
            os.lchown(os.path.join(directory, name), uid, gid)
