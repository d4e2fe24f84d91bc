"""Atomic writes and reads of the agent's own files."""

import contextlib
import itertools
import os
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from temporal_plans.activities.agent.sandbox.beneath import open_file
from temporal_plans.domain.values.model import Value

_SIZE_LIMIT = 16 * 1024 * 1024  # bytes

_numbers = itertools.count()
"""Of the files that this process has written: two threads may write the same one."""

V = TypeVar("V", bound=Value)


class UnreadableFile(Exception):
    """A file exists and can't be read as what it should be: it is damaged, or the disk is."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path.name} can't be read ({problem})")


def write_atomic(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Replace a file atomically; it is on disk when this returns. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{next(_numbers)}.new")
    with contextlib.suppress(FileNotFoundError):
        temporary.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode)
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
    """Return the value in a file; None when the file is missing. Raises UnreadableFile."""
    try:
        with open_file(path) as file:  # tasks can write to it if the agent is not root
            return kind.model_validate_json(file.read(_SIZE_LIMIT))
    except FileNotFoundError:
        return None
    except ValidationError as problem:
        [first, *_] = problem.errors()
        raise UnreadableFile(path, first["msg"]) from None
    except OSError as problem:
        raise UnreadableFile(path, problem.strerror or str(problem)) from problem
