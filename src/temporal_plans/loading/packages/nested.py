"""A package with all packages nested in it, ready for the content store."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from temporal_plans.domain.packages.nesting import NESTED_LIMIT, Nested
from temporal_plans.domain.packages.package import OPERATOR_FILE, Package
from temporal_plans.domain.packages.tasks.nested import NestedTask
from temporal_plans.domain.values.refusal import Reason, SpecError
from temporal_plans.loading.packages.limits import REASON_LIMIT, SIZE_LIMIT, too_large
from temporal_plans.loading.packages.locations import Location, location
from temporal_plans.loading.packages.reader import ReadPackage, read_files
from temporal_plans.loading.packages.stored import stored_archive

TREE_SIZE_LIMIT = 5 * SIZE_LIMIT
"""Bytes of all archives together."""


@dataclass(frozen=True)
class ResolvedPackage:
    """A package whose nested packages are known by their digests (``package.nested``). ``archive``
    is what the content store keeps under its digest."""

    read: ReadPackage
    archive: bytes
    digest: str

    @property
    def package(self) -> Package:
        return self.read.package

    @property
    def source(self) -> str:
        return self.read.source


@dataclass(frozen=True)
class PackageTree:
    """A package and, by their digests, all that have to be in the content store for it: each before
    those that it is nested in, the package itself last."""

    root: ResolvedPackage
    packages: Mapping[str, ResolvedPackage]


def load_tree(source: str | Path) -> PackageTree:
    """Return the package in a folder, an archive, or at an http address, with those nested in it.

    All tasks are followed, those of plans that may never run as well. Raises SpecError with every
    reason: what can't be read, packages that contain themselves, another version than a task names,
    more than 50 packages or 50 MB.
    """
    resolution = _Resolution()
    place = location(source)
    root = resolution.resolve(place, ())
    if resolution.problems or root is None:
        raise SpecError(resolution.problems[:REASON_LIMIT], source=place.source)
    return PackageTree(root, {each.digest: each for each in resolution.known.values()})


class _Resolution:
    """What is known while the packages are read, the nested ones first."""

    def __init__(self) -> None:
        self.known: dict[Location, ResolvedPackage] = {}
        self.problems: list[Reason] = []
        self._count = 0
        self._size = 0

    def resolve(self, place: Location, parents: tuple[str, ...]) -> ResolvedPackage | None:
        """Return a package; None when ``problems`` says why there is none. ``parents`` are the
        packages that it is nested in, the outermost first."""
        if known := self.known.get(place):
            return known
        found = self._read(place, nested=bool(parents))
        if found is None:
            return None
        read, files = found
        path = (*parents, _identity(read.package))
        children = self._children(place, read.package, path)
        nested = _nested(children)
        archive = stored_archive(files, nested)
        if len(archive) > SIZE_LIMIT:
            self.problems.append(too_large(place.source if parents else ""))
            return None
        digest = hashlib.sha256(archive).hexdigest()
        package = read.package.but(nested=nested)
        resolved = ResolvedPackage(replace(read, package=package), archive, digest)
        self._size += len(archive)
        self.known[place] = resolved
        return resolved

    def _read(
        self, place: Location, *, nested: bool
    ) -> tuple[ReadPackage, Mapping[str, bytes]] | None:
        self._count += 1
        try:
            self._check_limits(place)
            files = place.files()
            read = read_files(files, place.source)
            if read.faults:
                raise SpecError(fault.as_reason() for fault in read.faults)
        except SpecError as error:
            where = f"{place.source}: " if nested else ""
            self.problems += [one.but(field=f"{where}{one.field}") for one in error.reasons]
            return None
        return read, files

    def _children(
        self, place: Location, package: Package, path: tuple[str, ...]
    ) -> dict[str, ResolvedPackage]:
        """Return the nested packages by the names of their tasks."""
        children: dict[str, ResolvedPackage] = {}
        for task in package.operator.tasks:
            if isinstance(task, NestedTask) and len(self.problems) < REASON_LIMIT:
                try:
                    child = self._child(place, task, path)
                except SpecError as error:
                    where = f"{place.source}: " if len(path) > 1 else ""
                    field = f"{where}{OPERATOR_FILE}: tasks.{task.name}.spec.package"
                    self.problems += [reason.but(field=field) for reason in error.reasons]
                else:
                    if child is not None:
                        children[task.name] = child
        return children

    def _child(
        self, place: Location, task: NestedTask, path: tuple[str, ...]
    ) -> ResolvedPackage | None:
        if not task.package:
            raise SpecError(task.faults())
        where = place.nested(task.package)
        package = self._peeked(where)
        if package is not None:
            _check_cycle(package, path)
            _check_versions(package, task)
        return self.resolve(where, path)

    def _peeked(self, place: Location) -> Package | None:
        """Return the package at a place before those nested in it are followed; None when it can't
        be read, which is found again with all reasons."""
        if known := self.known.get(place):
            return known.package
        try:
            return read_files(place.files(), place.source).package
        except SpecError:
            return None

    def _check_limits(self, place: Location) -> None:
        fix = "split it into packages that are installed one by one"
        if self._count > NESTED_LIMIT + 1:
            problem = f"is nested with more than {NESTED_LIMIT} packages"
            raise SpecError([Reason(problem=problem, fix=fix)], source=place.source)
        if self._size > TREE_SIZE_LIMIT:
            problem = f"is nested with packages of more than {TREE_SIZE_LIMIT // 2**20} MB"
            raise SpecError([Reason(problem=problem, fix=fix)], source=place.source)


def _identity(package: Package) -> str:
    operator = package.operator
    return " ".join(filter(None, [operator.name, operator.app_version, operator.operator_version]))


def _nested(children: Mapping[str, ResolvedPackage]) -> Nested:
    """Contents are in the order in which they are met, the nested ones first."""
    contents = [
        digest
        for child in children.values()
        for digest in (*child.package.nested.contents, child.digest)
    ]
    tasks = {name: child.digest for name, child in children.items()}
    return Nested(tasks=tasks, contents=tuple(dict.fromkeys(contents)))


def _check_cycle(package: Package, path: tuple[str, ...]) -> None:
    identity = _identity(package)
    if identity in path:
        circle = " -> ".join([*path[path.index(identity) :], identity])
        fix = "remove one of these tasks"
        raise SpecError([Reason(problem="would contain itself", value=circle, fix=fix)])


def _check_versions(package: Package, task: NestedTask) -> None:
    """A repository would choose by these versions; here one package stands at the place."""
    operator = package.operator
    pairs = (
        ("operatorVersion", task.operator_version, operator.operator_version),
        ("appVersion", task.app_version, operator.app_version),
    )
    reasons = [
        Reason(problem=f"has the {field} {found}, and the task wants {wanted}", fix="correct one")
        for field, wanted, found in pairs
        if wanted and wanted != found
    ]
    if reasons:
        raise SpecError(reasons)
