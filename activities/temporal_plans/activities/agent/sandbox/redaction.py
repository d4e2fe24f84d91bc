"""What files of a sandbox hold that must not stand in texts that leave the agent."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from temporal_plans.activities.agent.sandbox.beneath import Folder

_FILE_SIZE_LIMIT = 1024 * 1024


def values_in_files(sandbox: Path, files: Iterable[str]) -> list[bytes]:
    """Return what files of a sandbox hold; without those that the task has moved or replaced."""
    values: list[bytes] = []
    for path in files:
        parts = PurePosixPath(path).parts
        with (
            suppress(OSError),
            Folder.open(sandbox) as top,
            top.folder(parts[:-1]) as folder,
            folder.open_file(parts[-1]) as file,
        ):
            values.append(file.read(_FILE_SIZE_LIMIT))
    return values
