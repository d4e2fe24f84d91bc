"""Where packages are, and where packages nested in them are: folders, archives, addresses.

What a package names is resolved in the package: one in an archive reaches nothing outside of it but
addresses, and nothing of this machine.
"""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.archive import read_archive
from temporal_plans.loading.packages.download import download, is_address
from temporal_plans.loading.packages.folder import read_folder


class Location(Protocol):
    """The place of one package; equal ones are the same place."""

    @property
    def source(self) -> str:
        """How people call it."""
        ...

    def files(self) -> Mapping[str, bytes]:
        """Return the package's files by path. Raises SpecError."""
        ...

    def nested(self, path: str) -> "Location":
        """Return the place that a path in the package means. Raises SpecError."""
        ...


def location(source: str | Path) -> Location:
    """Return the place of a folder, an archive, or an address. Raises SpecError."""
    text = str(source)
    if is_address(text):
        return ArchiveLocation(text, read_archive(download(text), text))
    path = Path(source)
    if path.is_dir():
        return FolderLocation(path)
    try:
        return ArchiveLocation(text, read_archive(path.read_bytes(), text))
    except OSError as error:
        fix = "name a folder with operator.yaml, a .tgz archive, or the http address of one"
        reason = Reason(problem=error.strerror or str(error), fix=fix)
        raise SpecError([reason], source=text) from error


@dataclass(frozen=True)
class FolderLocation:
    """A folder of this machine."""

    path: Path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FolderLocation) and self.path.resolve() == other.path.resolve()

    def __hash__(self) -> int:
        return hash(self.path.resolve())

    @property
    def source(self) -> str:
        return str(self.path)

    def files(self) -> Mapping[str, bytes]:
        return read_folder(self.path)

    def nested(self, path: str) -> Location:
        if is_address(path):
            return location(path)
        _check_is_path(path)
        return location(self.path / path)


class ArchiveLocation:
    """A package in an archive: at its root, or in a folder of it."""

    def __init__(self, archive: str, files: Mapping[str, bytes], folder: str = "") -> None:
        self._archive = archive
        self._files = files
        self._folder = folder

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArchiveLocation) and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def source(self) -> str:
        return f"{self._archive}: {self._folder}" if self._folder else self._archive

    def files(self) -> Mapping[str, bytes]:
        start = f"{self._folder}/" if self._folder else ""
        return {
            path.removeprefix(start): content
            for path, content in self._files.items()
            if path.startswith(start)
        }

    def nested(self, path: str) -> Location:
        if is_address(path):
            return location(path)
        _check_is_path(path)
        place = posixpath.normpath(posixpath.join("/", self._folder, path)).lstrip("/")
        if path.startswith("/") or _leaves(self._folder, path):
            raise _refused(path, "leaves the archive", "name a folder or archive in it")
        if place in self._files:
            source = f"{self._archive}: {place}"
            return ArchiveLocation(source, read_archive(self._files[place], source))
        if not place or any(name.startswith(f"{place}/") for name in self._files):
            return ArchiveLocation(self._archive, self._files, place)
        raise _refused(path, "is not in the archive", "pack it with the package that names it")

    @property
    def _place(self) -> tuple[str, str]:
        return self._archive, self._folder


def _leaves(folder: str, path: str) -> bool:
    joined = posixpath.normpath(posixpath.join(folder, path))
    return joined == ".." or joined.startswith("../")


def _check_is_path(path: str) -> None:
    """A name alone is that of a package in a repository, of which there are none here."""
    if "/" not in path:
        raise _refused(path, "is the name of a package in a repository", f"write ./{path}")
    if "\0" in path:
        raise _refused(path, "is no path", "write ./FOLDER")


def _refused(path: str, problem: str, fix: str) -> SpecError:
    return SpecError([Reason(problem=problem, value=path, fix=fix)])
