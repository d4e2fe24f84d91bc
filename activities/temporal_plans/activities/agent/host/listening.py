"""The ports of this machine on which processes listen (TCP)."""

from collections.abc import Iterator
from contextlib import suppress

_LISTEN = "0A"
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def listening_ports() -> frozenset[int]:
    """Return the ports on which any process listens, on whatever address."""
    return frozenset(port for table in _TABLES for port in _listening(table))


def _listening(table: str) -> Iterator[int]:
    with suppress(FileNotFoundError), open(table, encoding="ascii") as file:
        for line in file:
            fields = line.split()
            if fields[3] == _LISTEN:
                yield int(fields[1].rpartition(":")[2], 16)
