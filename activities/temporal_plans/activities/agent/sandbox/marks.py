"""Marks the processes of a task by two supplementary groups.

A process can overwrite its environment, leave its session and close its files, but only root can
drop a group. So all processes of a task that is not root keep the marks of its sandbox, and so do
those of its checks, with any parent. No file belongs to these groups.

Linux permits any group id; a container whose user namespace maps fewer has no marks.
"""

import hashlib
import os
from pathlib import Path

from temporal_plans.activities.agent.sandbox.identity import Identity

_FIRST, _NUMBER = 0xE000_0000, 0x0FFF_FFFE
"""The range of the marks, above all groups that systems assign. Two of them make a mark that no
other sandbox has."""


def marks_of(sandbox: Path) -> frozenset[int]:
    """Return the groups that mark the processes of a sandbox."""
    digest = hashlib.sha256(os.fsencode(sandbox.absolute())).digest()
    parts = (digest[:8], digest[8:16])
    return frozenset(_FIRST + int.from_bytes(part, "big") % _NUMBER for part in parts)


def marked(identity: Identity, sandbox: Path) -> Identity:
    """Return the identity with the marks of a sandbox, if this machine permits them."""
    if not _permitted():
        return identity
    return identity.but(groups=(*identity.groups, *sorted(marks_of(sandbox) - {*identity.groups})))


def _permitted() -> bool:
    """Whether all marks are groups of this user namespace."""
    try:
        lines = Path("/proc/self/gid_map").read_text(encoding="ascii").splitlines()
    except OSError:
        return False
    ranges = [tuple(map(int, line.split())) for line in lines]
    return any(first <= _FIRST and first + size >= _FIRST + _NUMBER for first, _, size in ranges)
