"""The run history of an owner's plans."""

from datetime import datetime

from temporal_plans.domain.plans.status import Status
from temporal_plans.domain.values.model import CompactValue

RUNS_LIMIT = 50
"""Runs of one plan that are kept."""


class RunRecord(CompactValue):
    """One run of an owner's plan. ``what`` is a summary of the changes (a deployment) or how the
    run was started; ``run_id`` is the workflow run that it ended in."""

    plan: str
    run: int
    started: datetime
    ended: datetime | None = None
    status: Status
    superseded: bool = False
    config: int = 0
    by: str = ""
    reason: str = ""
    what: str = ""
    run_id: str = ""


class RunHistory(CompactValue):
    """Answer of an owner's query ``runs``: runs of all its plans, oldest first. ``dropped`` is
    the number of older runs that are no longer kept."""

    runs: tuple[RunRecord, ...] = ()
    dropped: int = 0


class RunBook:
    """The newest runs of every plan."""

    def __init__(self, history: RunHistory) -> None:
        self._runs = list(history.runs)
        self._dropped = history.dropped

    @property
    def history(self) -> RunHistory:
        return RunHistory(runs=tuple(self._runs), dropped=self._dropped)

    def add(self, run: RunRecord) -> None:
        """Add a run, and drop the oldest run of its plan above the limit."""
        self._runs.append(run)
        same = [one for one in self._runs if one.plan == run.plan]
        if len(same) > RUNS_LIMIT:
            self._runs.remove(same[0])
            self._dropped += 1

    def note(
        self,
        plan: str,
        run: int,
        status: Status,
        *,
        superseded: bool,
        ended: datetime | None,
        run_id: str,
    ) -> None:
        """Update a run's status."""
        for index, one in enumerate(self._runs):
            if (one.plan, one.run) == (plan, run):
                self._runs[index] = one.but(
                    status=status, superseded=superseded, ended=ended, run_id=run_id or one.run_id
                )

    def end(
        self, plan: str, run: int, what: str, now: datetime, *, superseded: bool = False
    ) -> None:
        """Mark a run as complete, or as superseded."""
        for index, one in enumerate(self._runs):
            if (one.plan, one.run, one.what, one.ended) == (plan, run, what, None):
                status = one.status if superseded else Status.COMPLETE
                self._runs[index] = one.but(status=status, superseded=superseded, ended=now)

    def last(self, plan: str) -> RunRecord:
        """Return the newest run of a plan. Raises StopIteration without any."""
        return next(one for one in reversed(self._runs) if one.plan == plan)

    def last_number(self, plan: str) -> int:
        """Return the number of a plan's newest run, 0 without any."""
        return max((one.run for one in self._runs if one.plan == plan), default=0)
