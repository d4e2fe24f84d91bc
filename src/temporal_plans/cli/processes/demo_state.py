"""Where a demo keeps its files, and the packages of Python that it needs."""

import importlib.util
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from temporal_plans.domain.values.failure import UserFacingError


class ModulesMissingError(UserFacingError, ImportError):
    """The extra of a demo is not installed."""

    usage = True


@contextmanager
def demo_state(state_dir: Path | None, *, keep: bool) -> Generator[Path]:
    """The state directory; a temporary one is removed at the end, except with ``keep``."""
    if state_dir is not None:
        yield state_dir
        return
    directory = Path(tempfile.mkdtemp(prefix="temporal-plans-demo-"))
    directory.chmod(0o755)  # tasks of another user must reach their sandboxes
    try:
        yield directory
    finally:
        if not keep:
            shutil.rmtree(directory, ignore_errors=True)


def check_modules(*, own_cluster: bool) -> None:
    """Raise ModulesMissingError when a package is missing that a cluster needs; certificates are
    made for one of our own only."""
    needed = ("kubernetes_asyncio", *(("trustme",) if own_cluster else ()))
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ModulesMissingError(
            f"--package: needs {' and '.join(missing)}; pip install 'temporal-plans[demo]'"
        )
