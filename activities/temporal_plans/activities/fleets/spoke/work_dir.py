"""The work directory of a spoke: one process at a time, with an identity that survives it."""

import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from temporal_plans.activities.mechanics.file_lock import try_lock
from temporal_plans.domain.values.failure import UserFacingError


class SpokeWorkDirError(UserFacingError):
    """The work directory can't be used."""


@contextmanager
def lineage_of(root: Path) -> Generator[str]:
    """Yield the id of a work directory, which is made at its first use, and lock it meanwhile.
    Raises SpokeWorkDirError."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = os.open(root / "spoke.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise SpokeWorkDirError(f"work directory {root}: {error.strerror or error}") from error
    try:
        if not try_lock(lock):
            text = f"work directory {root} is used by another spoke; stop it or choose another"
            raise SpokeWorkDirError(text)
        yield _lineage(root / "spoke.json")
    finally:
        os.close(lock)


def _lineage(path: Path) -> str:
    try:
        if path.exists():
            return str(json.loads(path.read_text())["lineage"])[:100]
        lineage = uuid4().hex
        new = path.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"lineage": lineage}, file)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpokeWorkDirError(
            f"{path}: can't be used ({error}); restore it, or delete it: then the spoke registers"
            " as another one as soon as the hub takes the former one for gone"
        ) from error
    return lineage
