"""How soon a spoke registers again."""

import logging

_log = logging.getLogger(__name__)

STEADY = 10.0
"""Seconds that the hub watches a process when all is well, at least."""
LONGEST = 60.0
"""Seconds of the longest pause."""
TOLD_FROM = 4.0
"""Seconds of the first pause that people hear of."""


class RegistrationPace:
    """Ever longer pauses for a process that the hub stops to watch again and again: two processes
    with copies of one work directory take each other's place otherwise, without end."""

    def __init__(self) -> None:
        self._pause = 0.0

    def pause_after(self, watched: float) -> float:
        """Return the seconds to wait before the next registration, when the hub has watched for
        ``watched`` seconds."""
        if watched >= STEADY:
            self._pause = 0.0
            return 0.0
        self._pause = min(max(2 * self._pause, 1.0), LONGEST)
        if self._pause == TOLD_FROM:
            _log.warning(
                "the hub stops to watch this process again and again: does another one run with a "
                "copy of its work directory? Stop one of them, and give each a directory of its own"
            )
        return self._pause
