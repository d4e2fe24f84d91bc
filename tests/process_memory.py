"""How much memory processes have, as the kernel says."""

from pathlib import Path


def resident_memory(pid: int | str = "self") -> int:
    """The bytes of a process that are in memory now."""
    return _entry(pid, "VmRSS")


def peak_memory(pid: int | str = "self") -> int:
    """The most bytes of a process that have been in memory at one time."""
    return _entry(pid, "VmHWM")


def _entry(pid: int | str, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return 1024 * int(line.split()[1])
    raise AssertionError(f"the kernel says nothing of the memory of process {pid}")
