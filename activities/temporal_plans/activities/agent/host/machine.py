"""The resources of a machine, for an agent whose settings name none."""

import os
import shutil
from pathlib import Path

from temporal_plans.domain.cluster.agents import AgentResources

_MB = 1024 * 1024


def measure(work_dir: Path) -> AgentResources:
    """Return the machine's processors, memory and disk, less a reserve for the system.

    The reserve is 1 GB of memory and 5 GB of disk, or half when there is less than twice that. GPUs
    and mount disks are not detected; name them in the settings.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return AgentResources(
        cpus=float(len(os.sched_getaffinity(0))),
        memory=_minus_reserve(memory // _MB, 1024),
        disk=_minus_reserve(shutil.disk_usage(work_dir).free // _MB, 5 * 1024),
    )


def _minus_reserve(amount: int, reserve: int) -> int:
    return amount - reserve if amount >= 2 * reserve else amount // 2
