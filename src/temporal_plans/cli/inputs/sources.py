"""What a command line names: a file, a folder, or an address."""

from pathlib import Path

import typer

_ADDRESSES = ("http://", "https://")
_ARCHIVE_SUFFIXES = (".tgz", ".tar.gz")


def is_package(source: str) -> bool:
    """Return whether it can only be a package: a folder, an archive, or an address."""
    return (
        source.startswith(_ADDRESSES) or source.endswith(_ARCHIVE_SUFFIXES) or Path(source).is_dir()
    )


def existing(source: str) -> Path:
    """Return the path of a file. Raises typer.BadParameter when there is none."""
    path = Path(source)
    if not path.is_file():
        raise typer.BadParameter(f"no such file: {source!r}", param_hint="FILE")
    return path
