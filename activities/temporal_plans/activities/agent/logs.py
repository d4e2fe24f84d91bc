"""Reading what a task has printed, piece by piece."""

import os
from pathlib import Path

from temporal_plans.messages.cluster import LogChunk

STREAMS = ("stdout", "stderr")

_LARGEST = 256 * 1024
"""Bytes in one answer: as JSON it may be six times as much, and a payload ends at 2 MiB."""


def read_piece(path: Path, offset: int, limit: int, ended: bool) -> LogChunk:
    """A piece of a file from ``offset`` (bytes; negative: from the end), at most ``limit`` bytes.

    Characters of UTF-8 are never cut in two, unless the file ends in the middle of one; what is no
    UTF-8 is replaced. ``ended`` says that nothing will be added. A file that isn't there is empty.
    """
    limit = max(4, min(limit, _LARGEST))
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            file.seek(start)
            data = file.read(limit)
    except FileNotFoundError:
        return LogChunk(next_offset=max(0, offset), ended=ended)
    if offset < 0 and start > 0:
        skipped = _continuation(data)
        start, data = start + skipped, data[skipped:]
    at_end = start + len(data) >= size
    if not (at_end and ended):
        data = data[: len(data) - _unfinished(data)]
    reached = start + len(data)
    return LogChunk(
        text=data.decode("utf-8", "replace"), next_offset=reached, ended=ended and reached >= size
    )


def _continuation(data: bytes) -> int:
    """How many bytes at the beginning belong to a character that began before."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0b1100_0000 == 0b1000_0000:
        count += 1
    return count


def _unfinished(data: bytes) -> int:
    """How many bytes at the end belong to a character that isn't whole yet."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if needed > back else 0
    return 0
