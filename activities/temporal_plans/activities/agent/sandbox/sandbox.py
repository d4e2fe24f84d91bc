"""Fills a task's sandbox: volumes, secret files, configuration files.

All functions block and are called in a thread. An error in the pod's specification raises
TaskRefused with the field; OSError is not caught.
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from temporal_plans.activities.agent.host.refusal import TaskRefused
from temporal_plans.activities.agent.sandbox.beneath import (
    Folder,
    LeadsOutside,
    Owner,
    make_directory,
)
from temporal_plans.activities.agent.sandbox.environment import TEMPLATE_FOLDER
from temporal_plans.activities.agent.sandbox.identity import Identity
from temporal_plans.activities.agent.sandbox.removal import remove_tree
from temporal_plans.activities.agent.sandbox.templates import RenderedConfig
from temporal_plans.domain.services.spec import HostVolume
from temporal_plans.domain.values.refusal import Reason


class Sandbox:
    """One task's working directory.

    ``volumes`` are directories outside of it, by path inside. Files are written below the sandbox
    and these volumes only; a link to any other place is refused. All belongs to the task's user
    from the beginning, so that other tasks of that user may change it meanwhile (``beneath``).
    """

    def __init__(
        self, path: Path, volumes: Mapping[str, Path], identity: Identity | None = None
    ) -> None:
        self.path = path
        self._volumes = dict(volumes)
        self._owner = None if identity is None else Owner(identity.uid, identity.gid)

    def create(self) -> None:
        """Create an empty directory; the rest of an earlier attempt is deleted."""
        remove_tree(self.path)
        self.path.mkdir(mode=0o750)
        with Folder.open(self.path) as folder:
            for stream in ("stdout", "stderr"):
                folder.create_file(stream, mode=0o644, owner=self._owner).close()
            if self._owner is not None:
                os.fchown(folder.descriptor, *self._owner)

    def link_volumes(self) -> None:
        """Create missing volumes, and link all of them at their paths."""
        work_dir = self.path.parents[2]
        for path, directory in self._volumes.items():
            try:
                make_directory(directory, 0o700, self._owner)
            except NotADirectoryError:
                raise TaskRefused(
                    Reason(
                        field=f"volume {path!r}",
                        problem=f"{directory} is no directory on this agent",
                        fix="remove it",
                    )
                ) from None
        for path, directory in self._volumes.items():
            within = directory.is_relative_to(work_dir)
            self._link(path, directory, f"volume {path!r}", relative=within)

    def link_host_volumes(self, volumes: tuple[HostVolume, ...]) -> None:
        """Link directories of the machine itself."""
        for volume in volumes:
            field = f"host-volumes.{volume.name}"
            target = Path(volume.host_path)
            if not target.exists():
                raise TaskRefused(
                    Reason(
                        field=f"{field}.host-path",
                        problem=f"{target} does not exist on this agent",
                        fix="create it",
                    )
                )
            self._link(volume.container_path, target, field)

    def write_secret(self, path: str, value: bytes, field: str) -> None:
        """Write a file that only the task's user can read."""
        self._write(path, value, 0o600, field)

    def write_configs(self, configs: tuple[RenderedConfig, ...], *, templates_only: bool) -> None:
        """Write the config templates and, unless ``templates_only``, the rendered files."""
        for config, text, _ in configs:
            field = f"configs.{config.name}"
            template = f"{TEMPLATE_FOLDER}/{config.name}"
            self._write(template, config.template.encode(), 0o644, field)
            if not templates_only:
                data = text.encode("utf-8", "surrogateescape")
                self._write(config.dest, data, 0o640, f"{field}.dest")

    def set_owner(self) -> None:
        """Give what the agent has created directly in the sandbox to the task's user."""
        if self._owner is not None:
            with Folder.open(self.path) as folder:
                folder.give_entries(self._owner)

    def _link(self, path: str, target: Path, field: str, *, relative: bool = False) -> None:
        """``relative``: works for users that may not traverse the work directory's parents."""
        with self._parent(path, field) as parent:
            text = os.path.relpath(target.resolve(), parent.path) if relative else str(target)
            try:
                parent.create_link(PurePosixPath(path).name, text, self._owner)
            except FileExistsError:
                raise TaskRefused(
                    Reason(
                        field=field,
                        problem=f"the sandbox already has a file at {path}",
                        fix="use another path",
                    )
                ) from None

    def _write(self, path: str, data: bytes, mode: int, field: str) -> None:
        """Write a file in place of what has that name: an archive may contain it as a link."""
        name = PurePosixPath(path).name
        with self._parent(path, field) as parent:
            try:
                with parent.create_file(name, mode=mode, owner=self._owner) as file:
                    file.write(data)
            except IsADirectoryError:
                raise TaskRefused(
                    Reason(
                        field=field,
                        problem=f"the sandbox already has a directory at {path}",
                        fix="use another path",
                    )
                ) from None

    def _parent(self, path: str, field: str) -> Folder:
        """Open the directory for a path, in the sandbox or one of its volumes; create it if it is
        missing."""
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts:
            raise TaskRefused(
                Reason(
                    field=field,
                    problem="not a path inside the sandbox",
                    value=path,
                    fix="write a relative path without ..",
                )
            )
        root, parts = self._place_of(pure)
        try:
            with Folder.open(root) as top:
                return top.folder(parts[:-1], create=True, owner=self._owner)
        except LeadsOutside:
            raise TaskRefused(
                Reason(field=field, problem=f"{path} is outside of the sandbox, through a link")
            ) from None
        except (NotADirectoryError, FileExistsError):
            raise TaskRefused(
                Reason(
                    field=field,
                    problem=f"a directory above {path} is no directory",
                    fix="use another path",
                )
            ) from None

    def _place_of(self, path: PurePosixPath) -> tuple[Path, tuple[str, ...]]:
        """Return the directory that a path is in, the sandbox or a volume, and the rest of it."""
        roots = {PurePosixPath(): self.path}
        roots |= {PurePosixPath(inside): volume for inside, volume in self._volumes.items()}
        above = max((inside for inside in roots if inside in path.parents), key=_depth)
        return roots[above], path.relative_to(above).parts


def _depth(path: PurePosixPath) -> int:
    return len(path.parts)


def read_only_note(volumes: tuple[HostVolume, ...]) -> str:
    """Return a note on host volumes of mode RO: a link can't make them read-only."""
    writable = [volume.name for volume in volumes if volume.mode == "RO"]
    return f"host volumes not kept read-only: {', '.join(writable)}" if writable else ""
