"""Reads the output of a task in chunks."""

import os
from pathlib import Path

from temporal_plans.activities.agent.sandbox.beneath import Folder
from temporal_plans.messages.tasks import LogChunk

STREAMS = ("stdout", "stderr")

_CHUNK_SIZE_LIMIT = 256 * 1024
"""Bytes of one chunk: JSON may take six times as much, and a payload is limited to 2 MiB."""


def read_chunk(path: Path, offset: int, limit: int, ended: bool) -> LogChunk:
    """Return at most ``limit`` bytes of a file from ``offset`` (negative: from the end).

    UTF-8 characters are never split, unless the file ends inside one; invalid UTF-8 is replaced.
    ``ended``: the file will not grow any more. A missing file counts as empty.

    Raises OSError: NotRegular when the task has replaced the file by a link, a FIFO or a device,
    which is never followed or waited for.
    """
    limit = max(4, min(limit, _CHUNK_SIZE_LIMIT))
    try:
        with Folder.open(path.parent) as sandbox, sandbox.open_file(path.name) as file:
            size = os.fstat(file.fileno()).st_size
            start = max(0, size + offset) if offset < 0 else min(offset, size)
            file.seek(start)
            data = file.read(limit)
    except FileNotFoundError:
        return LogChunk(next_offset=max(0, offset), ended=ended)
    if offset < 0 and start > 0:
        skipped = _leading_continuation_bytes(data)
        start, data = start + skipped, data[skipped:]
    at_end = start + len(data) >= size
    if not (at_end and ended):
        data = data[: len(data) - _incomplete_tail_bytes(data)]
    reached = start + len(data)
    return LogChunk(
        text=data.decode("utf-8", "replace"), next_offset=reached, ended=ended and reached >= size
    )


def _leading_continuation_bytes(data: bytes) -> int:
    """Count the leading bytes that belong to a character that starts before the data."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0b1100_0000 == 0b1000_0000:
        count += 1
    return count


def _incomplete_tail_bytes(data: bytes) -> int:
    """Count the trailing bytes that belong to an incomplete character."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0b1100_0000 == 0b1000_0000:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if needed > back else 0
    return 0
