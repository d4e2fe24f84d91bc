"""Work of a workflow beside its main loop, which begins it again until it is done."""

from collections.abc import Coroutine
from typing import Any, Protocol

from temporalio import workflow

from temporal_plans.workflows.fleets.audited import FAILED_WORK_INTERVAL, start

AT_ONCE = 50
"""Works that are under way at a time."""


class Loop(Protocol):
    """The workflow: its main loop, and its log."""

    def changed(self) -> None: ...

    def record_problem(self, name: str, text: str) -> None: ...


class WorkByKey:
    """At most one work for a key at a time, and ``AT_ONCE`` in all. The loop hears of each end."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._busy: set[str] = set()

    def has_room(self, key: str) -> bool:
        """Return whether work for this key may begin now."""
        return key not in self._busy and len(self._busy) < AT_ONCE

    def begin(self, key: str, subject: str, work: Coroutine[Any, Any, None]) -> None:
        """Begin work. The problem of one that fails is recorded under its subject."""

        async def whole() -> None:
            try:
                await work
            except Exception as error:  # it would be begun again at once, without end
                self._loop.record_problem(subject, f"{type(error).__name__}: {error}")
                await workflow.sleep(FAILED_WORK_INTERVAL)
            self._busy.discard(key)
            self._loop.changed()

        self._busy.add(key)
        start(whole())
