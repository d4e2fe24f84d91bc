"""A clock of one process, which jumps when it is told to: by Debian's libfaketime, where it is."""

from collections.abc import Mapping
from pathlib import Path

_LIBRARIES = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


class Clock:
    """The wall clock of the processes that get ``env``. libfaketime must be there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    @property
    def env(self) -> Mapping[str, str]:
        return {
            "LD_PRELOAD": str(_LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",  # seconds until a jump is seen
            "DONT_FAKE_MONOTONIC": "1",  # a real clock that is set leaves that alone
        }

    def set(self, ahead: int) -> None:
        """Have the clock run ``ahead`` seconds before the machine's, or behind it."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{ahead:+d}s\n")
        fresh.rename(self._file)


def can_jump() -> bool:
    return bool(_LIBRARIES)
