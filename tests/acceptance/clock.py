"""A clock of one process, which jumps when it is told to: by a library of ours that a C compiler
makes.

Not by libfaketime, which also falsifies what a clock that is set leaves alone, whatever its
settings (0.9.10): a wait on a condition variable of CLOCK_MONOTONIC is over at once, so that every
thread of Python that waits for the interpreter's lock takes a processor, and ``time.sleep`` raises
EINVAL.
"""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_name("wall_clock.c")
_COMPILER = "cc"
_SECOND = 1_000_000_000


class Clock:
    """The wall clock of the processes that get ``env``. Its ``file`` and the library are in a
    directory that they can all read. A compiler must be there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._file.write_bytes(struct.pack("q", 0))
        self._library = file.with_name("wall_clock.so")
        if not self._library.exists():
            _compile(self._library)

    @property
    def env(self) -> Mapping[str, str]:
        return {"LD_PRELOAD": str(self._library), "WALL_CLOCK": str(self._file)}

    def set(self, ahead: int) -> None:
        """Have the clock run ``ahead`` seconds before the machine's, or behind it, from now on."""
        with self._file.open("r+b", buffering=0) as file:
            file.write(struct.pack("q", ahead * _SECOND))


def can_jump() -> bool:
    return shutil.which(_COMPILER) is not None


def _compile(library: Path) -> None:
    options = ("-shared", "-fPIC", "-O2", "-Wall", "-Werror")
    subprocess.run([_COMPILER, *options, "-o", library, _SOURCE, "-ldl"], check=True)
