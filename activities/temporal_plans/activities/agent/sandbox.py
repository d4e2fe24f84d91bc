"""Filling a task's sandbox: volumes, secret files, configuration files.

Everything here blocks and is called in a thread. What goes wrong by the pod's own doing is a
TaskRefused that names the field; OSError is left to the caller.
"""

import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from temporal_plans.activities.agent.environment import TEMPLATE_FOLDER
from temporal_plans.activities.agent.files import give_away, remove_tree
from temporal_plans.activities.agent.identity import Identity
from temporal_plans.activities.agent.refusal import TaskRefused
from temporal_plans.domain.service import ConfigTemplate, HostVolume
from temporal_plans.loading.mustache import TemplateError, render


class Sandbox:
    """One task's working directory.

    ``volumes`` are the directories outside of it, by path inside; links into them are all that may
    lead out when a file is written.
    """

    def __init__(self, path: Path, volumes: Mapping[str, Path]) -> None:
        self.path = path
        self._volumes = dict(volumes)

    def create(self) -> None:
        """Begins with an empty directory, whatever a try before this left."""
        remove_tree(self.path)
        self.path.mkdir(mode=0o750)
        for stream in ("stdout", "stderr"):
            (self.path / stream).touch(mode=0o644)

    def link_volumes(self, identity: Identity | None) -> None:
        """Makes the volumes that aren't there yet, and links all at their paths."""
        work_dir = self.path.parents[2]
        for path, directory in self._volumes.items():
            if not directory.exists():
                directory.mkdir(mode=0o755)
            if identity is not None and directory.stat().st_uid != identity.uid:
                os.chown(directory, identity.uid, identity.gid)
            within = directory.is_relative_to(work_dir)
            self._link(path, directory, f"volume {path!r}", relative=within)

    def link_host_volumes(self, volumes: tuple[HostVolume, ...]) -> None:
        """Links directories of the machine itself."""
        for volume in volumes:
            field = f"host-volumes.{volume.name}"
            target = Path(volume.host_path)
            if not target.exists():
                raise TaskRefused(f"{field}.host-path: there is no {target} on this agent")
            self._link(volume.container_path, target, field)

    def write_secret(self, path: str, value: bytes, field: str) -> None:
        """A file that only the task's user can read."""
        self._write(path, value, 0o600, field)

    def write_configs(self, configs: tuple[ConfigTemplate, ...], env: Mapping[str, str]) -> None:
        """Renders configuration templates with the task's environment."""
        for config in configs:
            field = f"configs.{config.name}"
            template = f"{TEMPLATE_FOLDER}/{config.name}"
            self._write(template, config.template.encode(), 0o644, field)
            try:
                text = render(config.template, env, strict=True, name=config.name)
            except TemplateError as problem:
                raise TaskRefused(f"{field}: {problem}") from None
            self._write(config.dest, text.encode(), 0o640, f"{field}.dest")

    def give_to(self, identity: Identity | None) -> None:
        if identity is not None:
            give_away(self.path, identity.uid, identity.gid)

    def _link(self, path: str, target: Path, field: str, *, relative: bool = False) -> None:
        """``relative``: works for users whom the directories above the work directory keep out."""
        link = self._inside(path, field)
        self._make_parents(link, field)
        if link.is_symlink() or link.exists():
            raise TaskRefused(f"{field}: the sandbox has something at {path} already")
        link.symlink_to(
            os.path.relpath(target.resolve(), link.parent.resolve()) if relative else target
        )

    def _write(self, path: str, data: bytes, mode: int, field: str) -> None:
        target = self._inside(path, field)
        self._make_parents(target, field)
        if target.is_symlink():
            target.unlink()  # an archive may bring the file as a link to anywhere
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with open(os.open(target, flags, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)

    def _inside(self, path: str, field: str) -> Path:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts:
            raise TaskRefused(f"{field}: {path!r} must be a path below the sandbox")
        return self.path / pure

    def _make_parents(self, path: Path, field: str) -> None:
        """Makes the directories above a path, none of them outside of sandbox and volumes."""
        roots = [self.path.resolve(), *(volume.resolve() for volume in self._volumes.values())]
        existing = path.parent
        while not existing.exists() and not existing.is_symlink():
            existing = existing.parent
        real = existing.resolve()
        if not any(real.is_relative_to(root) for root in roots):
            raise TaskRefused(f"{field}: {path.relative_to(self.path)} leads out of the sandbox")
        path.parent.mkdir(parents=True, exist_ok=True)


def read_only_note(volumes: tuple[HostVolume, ...]) -> str:
    """What to tell of host volumes that are to be read-only: a link can't make them so."""
    loose = [volume.name for volume in volumes if volume.mode == "RO"]
    return f"host volumes not kept read-only: {', '.join(loose)}" if loose else ""
