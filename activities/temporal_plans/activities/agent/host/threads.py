"""Threads of an agent, and the detection that they are stuck.

What tasks can slow down, such as reading their output and deleting their files, has few threads of
its own, so that it never takes those that start tasks and save statuses (asyncio's executor).
"""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_log = logging.getLogger(__name__)

_STUCK_AFTER = 60.0  # seconds
_POLL_INTERVAL = 1.0


class Threads:
    """A few threads for work of one kind."""

    def __init__(self, name: str, number: int) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix=name)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of ``work``, once a thread is free for it."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: work(*args, **kwargs))


class ThreadProbe:
    """Detects that asyncio's executor has executed nothing for a minute. Such an agent can start no
    task and save no status; a disk that does not answer is the usual reason."""

    def __init__(self, stuck_after: float = _STUCK_AFTER) -> None:
        self._stuck_after = stuck_after
        self._probe: asyncio.Future[None] | None = None
        self._since = 0.0
        self._logged = False

    def stuck(self) -> bool:
        """Return whether the threads are stuck. Ask regularly: each call may begin a new probe."""
        if self._probe is None or self._probe.done():
            self._probe = asyncio.get_running_loop().run_in_executor(None, _do_nothing)
            self._since = time.monotonic()
        stuck = time.monotonic() - self._since > self._stuck_after
        if stuck and not self._logged:
            _log.error(
                "all threads of this agent have been busy for %g s, as by a disk that does not "
                "answer; until one is free, the agent reads as UNREACHABLE and gets no new tasks",
                self._stuck_after,
            )
        self._logged = stuck
        return stuck

    async def wait_until_free(self) -> None:
        """Return when the threads are not stuck."""
        while self.stuck():
            await asyncio.sleep(_POLL_INTERVAL)


def _do_nothing() -> None:
    return
