"""Limits of cpu and memory by cgroup v2."""

import contextlib
import logging
import os
from pathlib import Path

from temporal_plans.domain.services.spec import ResourceSet
from temporal_plans.domain.values.model import Value

_log = logging.getLogger(__name__)

_CPU_PERIOD = 100_000  # microseconds
_CONTROLLERS = ("cpu", "memory")


class CgroupLimits(Value):
    """File contents of a cgroup, by file name."""

    cpu_weight: str
    cpu_max: str
    memory_max: str


class CgroupsUnavailable(Exception):
    """This agent can't set limits by cgroup v2; the text says why."""


def limits_of(resources: ResourceSet) -> CgroupLimits:
    """Return the limits of a resource set: its reservation, or its ``resource-limits`` if given.

    cpus become a weight of 100 per core and a quota per 100 ms; memory is a hard limit in bytes.
    """
    limits = resources.limits
    cpus = resources.cpus if limits is None or limits.cpus is None else limits.cpus
    memory = resources.memory if limits is None or limits.memory is None else limits.memory
    quota = "max"
    if cpus != "unlimited" and cpus > 0:
        quota = str(max(1000, round(cpus * _CPU_PERIOD)))  # the kernel's minimum is 1 ms
    return CgroupLimits(
        cpu_weight=str(min(10_000, max(1, round(resources.cpus * 100)))),
        cpu_max=f"{quota} {_CPU_PERIOD}",
        memory_max="max" if memory == "unlimited" or not memory else str(memory * 1024 * 1024),
    )


class CgroupTree:
    """The cgroups of an agent's tasks, one per task, below a directory with controllers enabled."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create(self, name: str, limits: CgroupLimits) -> Path:
        """Create a task's cgroup with its limits. Raises OSError."""
        path = self._root / name
        path.mkdir(exist_ok=True)
        for file, content in (
            ("cpu.weight", limits.cpu_weight),
            ("cpu.max", limits.cpu_max),
            ("memory.max", limits.memory_max),
        ):
            (path / file).write_text(content, encoding="ascii")
        return path

    def kill(self, name: str) -> None:
        """Kill all processes in a cgroup, if there is one."""
        with contextlib.suppress(OSError):
            (self._root / name / "cgroup.kill").write_text("1", encoding="ascii")

    def remove(self, name: str) -> None:
        """Remove a cgroup that has no processes."""
        with contextlib.suppress(OSError):
            (self._root / name).rmdir()


def open_cgroups(delegated: Path | None, name: str) -> CgroupTree:
    """Create the tree for this agent's tasks and test it. Raises CgroupsUnavailable.

    ``delegated`` is a cgroup for the agent. Without it, the agent uses its own cgroup and moves
    itself into a leaf of it, since a cgroup that delegates controllers can contain no process
    (except the root). That works if it is the only process there, as with systemd's
    ``Delegate=yes``.
    """
    base = delegated or _own_cgroup()
    try:
        if delegated is None:
            _move_into_leaf(base, f"agent-{name}")
        _enable(base)
        tasks = base / f"tasks-{name}"
        tasks.mkdir(exist_ok=True)
        _enable(tasks)
        tree = CgroupTree(tasks)
        tree.create("probe", CgroupLimits(cpu_weight="100", cpu_max="max", memory_max="max"))
        tree.remove("probe")
    except OSError as problem:
        raise CgroupsUnavailable(f"{base}: {problem}") from None
    return tree


def _own_cgroup() -> Path:
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        own = next((line[3:].strip() for line in file if line.startswith("0::")), None)
    with open("/proc/self/mounts", encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    mount = next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)
    if own is None or mount is None:
        raise CgroupsUnavailable("this machine has no cgroup v2")
    base = Path(mount) / own.lstrip("/")
    available = (base / "cgroup.controllers").read_text(encoding="ascii").split()
    if missing := [name for name in _CONTROLLERS if name not in available]:
        raise CgroupsUnavailable(f"{base} has no controller {' and '.join(missing)}")
    return base


def _move_into_leaf(base: Path, leaf: str) -> None:
    members = (base / "cgroup.procs").read_text(encoding="ascii").split()
    if members == [str(os.getpid())]:
        (base / leaf).mkdir(exist_ok=True)
        (base / leaf / "cgroup.procs").write_text("0", encoding="ascii")


def _enable(path: Path) -> None:
    (path / "cgroup.subtree_control").write_text(
        " ".join(f"+{name}" for name in _CONTROLLERS), encoding="ascii"
    )
