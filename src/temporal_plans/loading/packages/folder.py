"""Folders of packages."""

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from temporal_plans.domain.packages.package import (
    OPERATOR_FILE,
    PARAMETERS_FILE,
    TEMPLATES_FOLDER,
)
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.limits import (
    FILE_COUNT_LIMIT,
    REASON_LIMIT,
    SIZE_LIMIT,
    too_large,
    too_many,
)

Wanted = Callable[[str], bool]
"""Whether a path in the folder belongs to what is read."""


def of_package(path: str) -> bool:
    """Return whether a path is that of a file, or of a folder with files, that a package has."""
    first, _, rest = path.partition("/")
    return first == TEMPLATES_FOLDER or (not rest and first in (OPERATOR_FILE, PARAMETERS_FILE))


def visible(path: str) -> bool:
    """Return whether no part of a path is hidden."""
    return not any(part.startswith(".") for part in path.split("/"))


def read_folder(folder: Path, wanted: Wanted = of_package) -> dict[str, bytes]:
    """Return the files of a folder by their paths in it, with ``/``.

    A link to a file in the folder is read. Raises SpecError with all reasons: a link that leaves
    the folder, a device, more than 10 MB or 5,000 files, a file that can't be read.
    """
    root = folder.resolve()
    files: dict[str, bytes] = {}
    problems: list[Reason] = []
    size = 0
    for name, path in _entries(root, wanted, problems):
        try:
            size += path.stat().st_size
            if size > SIZE_LIMIT:
                problems.append(too_large(""))
                break
            if len(files) >= FILE_COUNT_LIMIT:
                problems.append(too_many(""))
                break
            files[name] = path.read_bytes()
        except OSError as error:
            problems.append(Reason(field=name, problem=error.strerror or str(error)))
    if problems:
        raise SpecError(problems[:REASON_LIMIT], source=str(folder))
    return files


def _entries(
    root: Path, wanted: Wanted, problems: list[Reason], prefix: str = ""
) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder: path in the package, path on the disk. Appends a reason for
    each entry that is refused."""
    try:
        entries = sorted(os.scandir(root / prefix), key=lambda entry: entry.name)
    except OSError as error:
        problems.append(Reason(field=prefix, problem=error.strerror or str(error)))
        return
    for entry in entries:
        name = f"{prefix}/{entry.name}" if prefix else entry.name
        if not wanted(name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(root, wanted, problems, name)
        elif problem := _problem(root, Path(entry.path)):
            problems.append(Reason(field=name, problem=problem, fix="replace it by the file"))
        else:
            yield name, Path(entry.path)


def _problem(root: Path, path: Path) -> str | None:
    """Return why a path is refused; None for a file, or a link to one in the folder."""
    try:
        target = path.resolve(strict=True)
        mode = target.stat().st_mode
    except (OSError, RuntimeError):  # a loop of links
        return "is a link to nothing"
    if not target.is_relative_to(root):
        return "is a link that leaves the package"
    if stat.S_ISDIR(mode):
        return "is a link to a folder"
    return None if stat.S_ISREG(mode) else "is neither a file nor a folder"
