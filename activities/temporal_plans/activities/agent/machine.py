"""What a machine has to offer, when nobody said what its agent is to offer."""

import os
import shutil
from pathlib import Path

from temporal_plans.domain.cluster import AgentResources

_MB = 1024 * 1024


def measure(work_dir: Path) -> AgentResources:
    """The machine's processors, memory and disk, less a part for the system itself.

    Memory and disk keep 1 GB and 5 GB back, or half when there is less than twice that. GPUs and
    mount disks are not looked for; say them in the settings.
    """
    return AgentResources(
        cpus=float(len(os.sched_getaffinity(0))),
        memory=_less(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _MB, 1024),
        disk=_less(shutil.disk_usage(work_dir).free // _MB, 5 * 1024),
    )


def _less(amount: int, kept: int) -> int:
    return amount - kept if amount >= 2 * kept else amount // 2
