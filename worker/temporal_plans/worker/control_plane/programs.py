"""The programs of a control plane, where ``make control-plane`` puts them.

They are in ``$XDG_CACHE_HOME/temporal-plans/control-plane/<digest>`` (``~/.cache`` without that
variable), a folder for each version.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok")
"""The files of one control plane."""


@dataclass(frozen=True)
class Programs:
    """The folder with the built programs."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return the file of a program of ``NAMES``."""
        return self.folder / name

    @property
    def complete(self) -> bool:
        """Whether all programs are there."""
        return all(os.access(self.path(name), os.X_OK) for name in NAMES)


def cache(env: Mapping[str, str] = os.environ) -> Path:
    """Return the folder with the folders of all versions."""
    base = Path(env.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "temporal-plans" / "control-plane"


def built(env: Mapping[str, str] = os.environ) -> Programs | None:
    """Return the programs that were built last; None when none are complete."""
    found = [Programs(folder) for folder in cache(env).glob("[!.]*")]
    complete = [each for each in found if each.complete]
    return max(complete, key=lambda each: each.folder.stat().st_mtime, default=None)
